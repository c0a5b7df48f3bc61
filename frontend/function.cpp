#include "frontend/function.h"

#include <c10/util/Type.h>

#include <algorithm>
#include <bit>

#include "frontend/events.h"

namespace sinter::detail {
namespace {

using frontend::NamedModule;

}  // namespace

Function::Function(const Options& options, const std::vector<NamedModule>& modules, const std::string& function_name)
    : options_(options),
      modules_(modules),
      name_(function_name),
      builder_(options_, modules_, name_, counters_),
      entries_(std::make_shared<const Entries>()) {}

Function::Found Function::find(const Entries& entries, const Flat& arguments, const frontend::Modes& modes) {
  Found found;
  for (const auto& entry : entries) {
    const auto fit = entry->guards().fit(arguments, modes);
    if (fit == frontend::Fit::full) return {entry, fit};
    if (fit == frontend::Fit::moved && found.entry == nullptr) found = {entry, fit};
  }
  return found;
}

bool Function::is_due(int64_t call) const {
  if (options_.verify == Verify::off) return false;
  if (options_.verify == Verify::automatic) return std::has_single_bit(static_cast<uint64_t>(call));
  return call == 2 || call % options_.verify.every() == 0;
}

bool Function::call(const Flat& arguments, const Program& program, Replay& replay) {
  Call call{arguments, program, replay, frontend::Modes::current(), {}};
  try {
    const Ran ran = run(call);
    frontend::Counters::add(ran == Ran::replay      ? counters_.replayed
                            : ran == Ran::recording ? counters_.recorded
                                                    : counters_.eager);
    tell(call.events);
    return ran == Ran::replay;
  } catch (...) {
    frontend::Counters::add(counters_.threw);
    tell(call.events);
    throw;
  }
}

Ran Function::run(Call& call) {
  if (frontend::capturing()) return run_callable(call);
  if (call.arguments.unknown != nullptr) {
    return run_unsupported(
        "an argument of type " + c10::demangle(call.arguments.unknown->name()) + " cannot be described", call);
  }
  const auto entries = entries_.load(std::memory_order_acquire);
  const auto found = find(*entries, call.arguments, call.modes);
  return found.entry != nullptr ? answer(found, call) : miss(call);
}

Ran Function::answer(const Found& found, Call& call) {
  auto& entry = *found.entry;
  const auto number = entry.arrive();
  if (!entry.compiled()) {
    return number == 2 && entry.may_be_setup() ? record_again(found.entry, call) : run_eagerly(entry, call);
  }
  if (entry.paths() != nullptr) return follow(entry, number, call);
  const bool moved = found.fit == frontend::Fit::moved;
  if ((moved || is_due(number)) && verify(found, number, call)) return Ran::recording;
  return moved ? run_eagerly(entry, call) : replay_or_run(found.entry, call);
}

template <class Work>
auto Function::noting_failure(Work&& work) {
  try {
    return work();
  } catch (...) {
    const std::lock_guard lock(notes_);
    if (!builder_.failed_at().empty()) failed_at_ = builder_.failed_at();
    throw;
  }
}

bool Function::verify(const Found& found, int64_t number, Call& call) {
  const std::unique_lock lock(building_, std::try_to_lock);
  if (!lock || !found.entry->compiled()) return false;
  auto other = noting_failure(
      [&] { return builder_.verify(*found.entry, number, found.fit, call.arguments, call.modes, call.program); });
  if (!found.entry->compiled()) note_break(call, *found.entry);
  if (other != nullptr) {
    note_recompilation(call, *other, other->record().because);
    refuse_break(*other);
    if (!is_full()) add(std::move(other));
  }
  if (found.entry->head() != nullptr) {
    after_verification(*found.entry, call.arguments);
  } else {
    refuse_break(*found.entry);
  }
  return true;
}

Ran Function::follow(Entry& entry, int64_t number, Call& call) {
  using Answer = frontend::Paths::Answer;
  auto answer = Answer::eager;
  const auto log = std::make_shared<frontend::HostLog>();
  try {
    const auto is_due_again = [this](int64_t of_course) { return is_due(of_course); };
    answer = entry.paths()->follow(call.arguments, call.modes, is_due_again, *log, call.replay);
  } catch (const InternalError& error) {
    keep_failure(entry, error, call);
  }
  if (answer == Answer::replayed) {
    entry.count_replay();
    return Ran::replay;
  }
  const frontend::HostLog::Scope answers(log);
  if (answer == Answer::record && extend(entry, number, call)) return Ran::recording;
  if (answer == Answer::filled) note_event(call, entry.guards().signature(), *entry.paths()->limit());
  if (answer == Answer::filled || answer == Answer::full) refuse(*entry.paths()->limit());
  call.replay.tensors.clear();
  return run_eagerly(entry, call);
}

bool Function::extend(Entry& entry, int64_t number, Call& call) {
  const std::unique_lock lock(building_, std::try_to_lock);
  if (!lock || !entry.compiled()) return false;
  auto because =
      noting_failure([&] { return builder_.extend(entry, number, call.arguments, call.modes, call.program); });
  note_recompilation(call, entry, std::move(because));
  refuse_break(entry);
  return true;
}

/// A plan that failed: the entry runs as eager runs from here on. Throws the error on where the call cannot run again.
void Function::keep_failure(Entry& entry, const InternalError& error, Call& call) {
  if (options_.strict) throw error;
  entry.turn_eager({.code = BreakCode::compile_failed,
                    .op = {},
                    .where = error.where(),
                    .reason = error.what(),
                    .hint = "this is a bug in Sinter"},
                   error.what());
  note_break(call, entry);
  if (const auto* half_written = dynamic_cast<const frontend::HalfWritten*>(&error)) throw *half_written;
}

Ran Function::replay_or_run(const std::shared_ptr<Entry>& entry, Call& call) {
  try {
    if (entry->replay(call.arguments, call.replay)) {
      call.replay.owner = entry;
      return Ran::replay;
    }
  } catch (const InternalError& error) {
    keep_failure(*entry, error, call);
    if (entry->head() != nullptr) specialise_if_idle(error.what());
  }
  call.replay.tensors.clear();
  return run_eagerly(*entry, call);
}

Ran Function::miss(Call& call) {
  for (size_t i = 0; i < call.arguments.tensors.size(); ++i) {
    if (frontend::is_plain(*call.arguments.tensors[i])) continue;
    return run_unsupported("input " + std::to_string(i) + " is not a dense strided tensor on the CPU or a CUDA device",
                           call);
  }
  std::unique_lock lock(building_, std::try_to_lock);
  if (!lock) {
    add_note("calls that came while another thread compiled ran eagerly");
    return run_callable(call);
  }
  const auto entries = entries_.load(std::memory_order_acquire);
  if (const auto found = find(*entries, call.arguments, call.modes); found.entry != nullptr) {
    lock.unlock();
    return answer(found, call);
  }
  frontend::collect_promises(call.arguments, promises_);
  frontend::check_promises(promises_, call.arguments, name_);
  if (auto entry = instantiate(call)) {
    lock.unlock();
    return answer({std::move(entry), frontend::Fit::full}, call);
  }
  return record(call, /*second_try=*/false);
}

Ran Function::record_again(const std::shared_ptr<Entry>& first, Call& call) {
  const std::unique_lock lock(building_, std::try_to_lock);
  if (!lock) return run_eagerly(*first, call);
  auto next = std::make_shared<Entries>(*entries_.load(std::memory_order_acquire));
  if (std::erase(*next, first) == 0) return run_eagerly(*first, call);
  publish(std::move(next));
  retire(*first, "retired: the call kept a tensor that it made; the next one was recorded anew");
  return record(call, /*second_try=*/true);
}

Ran Function::record(Call& call, bool second_try) {
  const auto entries = entries_.load(std::memory_order_acquire);
  const auto candidates = alike(call.arguments, call.modes);
  if (is_full() && candidates.empty()) {
    const auto note = std::to_string(max_entries) + " combinations of guards are compiled; others run eagerly";
    if (add_note(note)) note_event(call, {}, LimitReached{note});
    if (options_.fullgraph) throw UserError(name_ + ": fullgraph: " + note);
    return run_callable(call);
  }
  std::vector<GuardMiss> nearest;
  for (const auto& entry : *entries) {
    auto misses = entry->guards().misses(call.arguments, call.modes);
    if (nearest.empty() || misses.size() < nearest.size()) nearest = std::move(misses);
  }
  std::shared_ptr<frontend::ShapeFamily> family;
  const auto join_family = [&](const frontend::Captured& captured) {
    family = join(candidates, captured, call.arguments);
    return family != nullptr || options_.dynamic.value_or(false);
  };
  const auto entry =
      noting_failure([&] { return builder_.build(call.arguments, call.modes, call.program, nearest, join_family); });
  if (second_try) entry->note_second_try();
  if (family != nullptr) settle(entry, family);
  entry->count_eager();
  note_recompilation(call, *entry, std::move(nearest));
  if (family != nullptr || !is_full()) add(entry);
  refuse_break(*entry);
  return Ran::recording;
}

bool Function::is_full() const {
  const auto entries = entries_.load(std::memory_order_acquire);
  const auto live = std::count_if(entries->begin(), entries->end(),
                                  [](const auto& e) { return e->head() == nullptr && !e->guards().lost(); });
  return static_cast<size_t>(live) >= max_entries;
}

void Function::add(std::shared_ptr<Entry> entry) {
  const auto entries = entries_.load(std::memory_order_acquire);
  auto next = std::make_shared<Entries>();
  for (const auto& old : *entries) {
    if (!old->guards().lost()) {
      next->push_back(old);
      continue;
    }
    retire(*old, "retired: a tensor or module it relied on is gone or was replaced");
  }
  next->push_back(std::move(entry));
  publish(std::move(next));
  make_room();
}

void Function::publish(std::shared_ptr<const Entries> entries) {
  counters_.entries.store(static_cast<int64_t>(entries->size()), std::memory_order_relaxed);
  entries_.store(std::move(entries), std::memory_order_release);
}

void Function::retire(const Entry& entry, const std::string& note) {
  if (entry.head() != nullptr && entry.head() != &entry) return;
  auto report = entry.report();
  report.notes.push_back(note);
  const std::lock_guard lock(notes_);
  retired_.push_back(std::move(report));
}

void Function::refuse_break(const Entry& entry) const {
  if (!options_.fullgraph || entry.compiled()) return;
  if (const auto reason = entry.first_break()) refuse(*reason);
}

void Function::refuse(const GraphBreak& reason) const {
  if (!options_.fullgraph) return;
  throw UserError(name_ + ": fullgraph: " + frontend::one_line(reason));
}

Ran Function::run_eagerly(Entry& entry, Call& call) const {
  refuse_break(entry);
  entry.count_eager();
  return run_callable(call);
}

Ran Function::run_callable(const Call& call) {
  call.program.run(call.program.context, nullptr);
  return Ran::callable;
}

Ran Function::run_unsupported(const std::string& what, Call& call) {
  const GraphBreak reason{.code = BreakCode::unsupported_input,
                          .op = {},
                          .where = {},
                          .reason = what,
                          .hint = "pass dense tensors, scalars, strings, and containers of them"};
  bool is_new = false;
  {
    const std::lock_guard lock(notes_);
    const auto same = [&](const auto& entry) { return entry.breaks.front().reason == what; };
    auto found = std::find_if(unsupported_.begin(), unsupported_.end(), same);
    is_new = found == unsupported_.end();
    if (is_new) {
      EntryReport report;
      report.breaks.push_back(reason);
      found = unsupported_.insert(unsupported_.end(), std::move(report));
    }
    if (!options_.fullgraph) ++found->eager_calls;
  }
  if (is_new) note_event(call, {}, reason);
  refuse(reason);
  return run_callable(call);
}

bool Function::add_note(const std::string& note) {
  const std::lock_guard lock(notes_);
  if (std::find(note_texts_.begin(), note_texts_.end(), note) != note_texts_.end()) return false;
  note_texts_.push_back(note);
  return true;
}

Report Function::report() const {
  Report report{.function = name_, .mode = {}, .entries = {}, .failed_at = {}, .notes = {}};
  if (options_.mode == Mode::MaxAutotune) {
    report.notes.emplace_back("max-autotune does what reduce-overhead does in this version");
  }
  for (auto& note : frontend::PrivateLayout::here().notes()) report.notes.push_back(std::move(note));
  const auto entries = entries_.load(std::memory_order_acquire);
  const std::lock_guard lock(notes_);
  report.failed_at = failed_at_;
  report.entries = retired_;
  for (const auto& entry : *entries) {
    if (entry->head() != nullptr && entry->head() != entry.get()) continue;
    report.entries.push_back(entry->report());
    for (const auto& other : *entries) {
      const bool instance = other != entry && other->head() == entry.get();
      if (instance) report.entries.back().recorded_instantiations += other->graphs();
    }
  }
  report.entries.insert(report.entries.end(), unsupported_.begin(), unsupported_.end());
  report.notes.insert(report.notes.end(), note_texts_.begin(), note_texts_.end());
  return report;
}

}  // namespace sinter::detail
