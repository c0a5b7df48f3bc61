#include "frontend/function.h"

#include <c10/util/Type.h>

#include <algorithm>
#include <bit>
#include <set>

namespace sinter::detail {
namespace {

using frontend::NamedModule;

const char* name(Mode mode) {
  switch (mode) {
    case Mode::Default:
      return "default";
    case Mode::ReduceOverhead:
      return "reduce-overhead";
    case Mode::MaxAutotune:
      return "max-autotune";
  }
  return "";
}

void check(const Options& options, bool is_module) {
  if (options.verify.every() < 1 && options.verify != Verify::automatic && options.verify != Verify::off) {
    throw UserError("verify: a period of " + std::to_string(options.verify.every()) +
                    " calls; say n >= 1, sinter::Verify::automatic or sinter::Verify::off");
  }
  if (options.max_paths < 1) {
    throw UserError("max_paths: " + std::to_string(options.max_paths) + " courses; say at least 1");
  }
  if (is_module && !options.modules.empty()) {
    throw UserError("modules: the callable is a module itself; leave the option out, or compile a lambda");
  }
  if (std::find(options.optimizers.begin(), options.optimizers.end(), nullptr) != options.optimizers.end()) {
    throw UserError("optimizers: a null pointer; name optimizers that exist");
  }
  if (options.freeze && !options.optimizers.empty()) {
    throw UserError("freeze: an optimizer writes to parameters; leave one of the two options out");
  }
  std::set<std::string> names;
  for (const auto& [module_name, module] : options.modules) {
    if (module_name.empty() && options.modules.size() > 1) {
      throw UserError("modules: a module without a name; give each one a name");
    }
    if (module == nullptr) throw UserError("modules: '" + module_name + "' is empty; construct it first");
    if (!names.insert(module_name).second) throw UserError("modules: '" + module_name + "' twice; use distinct names");
  }
}

}  // namespace

Function::Function(Options options, std::vector<NamedModule> modules, std::string function_name)
    : options_(std::move(options)),
      modules_(std::move(modules)),
      name_(std::move(function_name)),
      builder_(options_, modules_, name_),
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
  if (frontend::capturing()) {
    program.run(program.context, nullptr);
    return false;
  }
  if (arguments.unknown != nullptr) {
    return run_unsupported("an argument of type " + c10::demangle(arguments.unknown->name()) + " cannot be described",
                           program);
  }
  const auto modes = frontend::Modes::current();
  const auto entries = entries_.load(std::memory_order_acquire);
  const auto found = find(*entries, arguments, modes);
  if (found.entry != nullptr) return answer(found, arguments, modes, program, replay);
  return miss(arguments, modes, program, replay);
}

bool Function::answer(const Found& found, const Flat& arguments, const frontend::Modes& modes, const Program& program,
                      Replay& replay) {
  auto& entry = *found.entry;
  const auto number = entry.arrive();
  if (!entry.compiled()) {
    return number == 2 && entry.may_be_setup() ? record_again(found.entry, arguments, modes, program)
                                               : run_eagerly(entry, program);
  }
  if (entry.paths() != nullptr) return follow(entry, number, arguments, modes, program, replay);
  const bool moved = found.fit == frontend::Fit::moved;
  if ((moved || is_due(number)) && verify(found, number, arguments, modes, program)) return false;
  return moved ? run_eagerly(entry, program) : replay_or_run(entry, arguments, program, replay);
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

bool Function::verify(const Found& found, int64_t call, const Flat& arguments, const frontend::Modes& modes,
                      const Program& program) {
  const std::unique_lock lock(building_, std::try_to_lock);
  if (!lock || !found.entry->compiled()) return false;
  auto other =
      noting_failure([&] { return builder_.verify(*found.entry, call, found.fit, arguments, modes, program); });
  if (other != nullptr) {
    refuse_break(*other);
    if (!is_full()) add(std::move(other));
  }
  if (found.entry->head() != nullptr) {
    after_verification(*found.entry, arguments);
  } else {
    refuse_break(*found.entry);
  }
  return true;
}

bool Function::follow(Entry& entry, int64_t call, const Flat& arguments, const frontend::Modes& modes,
                      const Program& program, Replay& replay) {
  using Answer = frontend::Paths::Answer;
  auto answer = Answer::eager;
  const auto log = std::make_shared<frontend::HostLog>();
  try {
    answer = entry.paths()->follow(arguments, modes, [this](int64_t number) { return is_due(number); }, *log, replay);
  } catch (const InternalError& error) {
    keep_failure(entry, error);
  }
  if (answer == Answer::replayed) {
    entry.count_replay();
    return true;
  }
  const frontend::HostLog::Scope answers(log);
  if (answer == Answer::record && extend(entry, call, arguments, modes, program)) return false;
  if (answer == Answer::full) refuse(*entry.paths()->limit());
  replay.tensors.clear();
  return run_eagerly(entry, program);
}

bool Function::extend(Entry& entry, int64_t call, const Flat& arguments, const frontend::Modes& modes,
                      const Program& program) {
  const std::unique_lock lock(building_, std::try_to_lock);
  if (!lock || !entry.compiled()) return false;
  noting_failure([&] { builder_.extend(entry, call, arguments, modes, program); });
  refuse_break(entry);
  return true;
}

/// A plan that failed: the entry runs as eager runs from here on. Throws the error on where the call cannot run again.
void Function::keep_failure(Entry& entry, const InternalError& error) const {
  if (options_.strict) throw error;
  entry.turn_eager({.code = BreakCode::compile_failed,
                    .op = {},
                    .where = error.where(),
                    .reason = error.what(),
                    .hint = "this is a bug in Sinter"},
                   error.what());
  if (const auto* half_written = dynamic_cast<const frontend::HalfWritten*>(&error)) throw *half_written;
}

bool Function::replay_or_run(Entry& entry, const Flat& arguments, const Program& program, Replay& replay) {
  try {
    if (entry.replay(arguments, replay)) return true;
  } catch (const InternalError& error) {
    keep_failure(entry, error);
    if (entry.head() != nullptr) specialise_if_idle(error.what());
  }
  replay.tensors.clear();
  return run_eagerly(entry, program);
}

bool Function::miss(const Flat& arguments, const frontend::Modes& modes, const Program& program, Replay& replay) {
  for (size_t i = 0; i < arguments.tensors.size(); ++i) {
    if (frontend::is_plain(*arguments.tensors[i])) continue;
    return run_unsupported("input " + std::to_string(i) + " is not a dense strided tensor on the CPU or a CUDA device",
                           program);
  }
  std::unique_lock lock(building_, std::try_to_lock);
  if (!lock) return run_uncounted("calls that came while another thread compiled ran eagerly", program);
  const auto entries = entries_.load(std::memory_order_acquire);
  if (const auto found = find(*entries, arguments, modes); found.entry != nullptr) {
    lock.unlock();
    return answer(found, arguments, modes, program, replay);
  }
  frontend::collect_promises(arguments, promises_);
  frontend::check_promises(promises_, arguments, name_);
  if (auto entry = instantiate(arguments, modes)) {
    lock.unlock();
    return answer({std::move(entry), frontend::Fit::full}, arguments, modes, program, replay);
  }
  return record(arguments, modes, program, /*second_try=*/false);
}

bool Function::record_again(const std::shared_ptr<Entry>& first, const Flat& arguments, const frontend::Modes& modes,
                            const Program& program) {
  const std::unique_lock lock(building_, std::try_to_lock);
  if (!lock) return run_eagerly(*first, program);
  auto next = std::make_shared<Entries>(*entries_.load(std::memory_order_acquire));
  if (std::erase(*next, first) == 0) return run_eagerly(*first, program);
  entries_.store(std::move(next), std::memory_order_release);
  retire(*first, "retired: the call kept a tensor that it made; the next one was recorded anew");
  return record(arguments, modes, program, /*second_try=*/true);
}

bool Function::record(const Flat& arguments, const frontend::Modes& modes, const Program& program, bool second_try) {
  const auto entries = entries_.load(std::memory_order_acquire);
  const auto candidates = alike(arguments, modes);
  if (is_full() && candidates.empty()) {
    const auto note = std::to_string(max_entries) + " combinations of guards are compiled; others run eagerly";
    if (options_.fullgraph) throw UserError(name_ + ": fullgraph: " + note);
    return run_uncounted(note, program);
  }
  std::vector<GuardMiss> nearest;
  for (const auto& entry : *entries) {
    auto misses = entry->guards().misses(arguments, modes);
    if (nearest.empty() || misses.size() < nearest.size()) nearest = std::move(misses);
  }
  std::shared_ptr<frontend::ShapeFamily> family;
  const auto join_family = [&](const frontend::Captured& captured) {
    family = join(candidates, captured, arguments);
    return family != nullptr || options_.dynamic.value_or(false);
  };
  const auto entry =
      noting_failure([&] { return builder_.build(arguments, modes, program, std::move(nearest), join_family); });
  if (second_try) entry->note_second_try();
  if (family != nullptr) settle(entry, family);
  entry->count_eager();
  if (family != nullptr || !is_full()) add(entry);
  refuse_break(*entry);
  return false;
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
  entries_.store(std::move(next), std::memory_order_release);
  make_room();
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
  auto text = name_ + ": fullgraph: " + sinter::name(reason.code);
  if (!reason.op.empty()) text += " " + reason.op;
  if (!reason.where.empty()) text += " at " + reason.where;
  text += ": " + reason.reason;
  if (!reason.hint.empty()) text += "; " + reason.hint;
  throw UserError(text);
}

bool Function::run_eagerly(Entry& entry, const Program& program) const {
  refuse_break(entry);
  entry.count_eager();
  program.run(program.context, nullptr);
  return false;
}

bool Function::run_unsupported(const std::string& what, const Program& program) {
  const GraphBreak reason{.code = BreakCode::unsupported_input,
                          .op = {},
                          .where = {},
                          .reason = what,
                          .hint = "pass dense tensors, scalars, strings, and containers of them"};
  if (options_.fullgraph) throw UserError(name_ + ": fullgraph: " + what + "; " + reason.hint);
  {
    const std::lock_guard lock(notes_);
    const auto same = [&](const auto& entry) { return entry.breaks.front().reason == what; };
    auto found = std::find_if(unsupported_.begin(), unsupported_.end(), same);
    if (found == unsupported_.end()) {
      EntryReport report;
      report.breaks.push_back(reason);
      found = unsupported_.insert(unsupported_.end(), std::move(report));
    }
    ++found->eager_calls;
  }
  program.run(program.context, nullptr);
  return false;
}

void Function::add_note(const std::string& note) {
  const std::lock_guard lock(notes_);
  if (std::find(note_texts_.begin(), note_texts_.end(), note) == note_texts_.end()) note_texts_.push_back(note);
}

bool Function::run_uncounted(const std::string& note, const Program& program) {
  add_note(note);
  program.run(program.context, nullptr);
  return false;
}

Report Function::report() const {
  Report report{.function = name_, .mode = name(options_.mode), .entries = {}, .failed_at = {}, .notes = {}};
  if (options_.mode == Mode::MaxAutotune) {
    report.notes.emplace_back("max-autotune does what reduce-overhead does in this version");
  }
  const auto entries = entries_.load(std::memory_order_acquire);
  const std::lock_guard lock(notes_);
  report.failed_at = failed_at_;
  report.entries = retired_;
  for (const auto& entry : *entries) {
    if (entry->head() == nullptr || entry->head() == entry.get()) report.entries.push_back(entry->report());
  }
  report.entries.insert(report.entries.end(), unsupported_.begin(), unsupported_.end());
  report.notes.insert(report.notes.end(), note_texts_.begin(), note_texts_.end());
  return report;
}

std::shared_ptr<Function> make_function(Options options, std::shared_ptr<torch::nn::Module> self, const char* kind) {
  const bool is_module = std::string_view(kind) == "module";
  if (is_module && self == nullptr) throw UserError("compile: the module is empty; construct it first");
  check(options, is_module);
  auto name = options.name;
  if (name.empty()) name = is_module ? frontend::class_name(*self) : kind;
  std::vector<NamedModule> modules(options.modules.begin(), options.modules.end());
  if (is_module) modules.emplace_back("", std::move(self));
  return std::make_shared<Function>(std::move(options), std::move(modules), std::move(name));
}

bool call(Function& function, const Flat& arguments, const Program& program, Replay& replay) {
  return function.call(arguments, program, replay);
}

Report report(const Function& function) { return function.report(); }

}  // namespace sinter::detail
