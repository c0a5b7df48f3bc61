#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "frontend/function.h"
#include "runtime/stopwatch.h"

/// What Function does with calls that differ from others in sizes only.
namespace sinter::detail {

using frontend::ShapeFamily;

namespace {

/// True for an entry that stands for one more shape of another entry.
bool is_instance(const frontend::Entry& entry) { return entry.head() != nullptr && entry.head() != &entry; }

/// True where a tensor is given twice: the program is recorded with one input for both, whose sizes are one.
bool repeats_a_tensor(const Flat& arguments) {
  std::unordered_set<const c10::TensorImpl*> seen;
  return std::ranges::any_of(arguments.tensors,
                             [&](const auto* tensor) { return !seen.insert(tensor->unsafeGetTensorImpl()).second; });
}

}  // namespace

std::shared_ptr<frontend::Entry> Function::instantiate(const Call& call) {
  for (const auto& family : families_) {
    if (!family->head()->guards().fit_but_for_sizes(call.arguments, call.modes)) continue;
    const auto sizes = family->bind(call.arguments);
    if (!sizes || !family->covers(*sizes)) continue;
    const runtime::Stopwatch stopwatch;
    auto trace = family->instantiate(*sizes, call.arguments);
    if (!trace) continue;
    auto entry = builder_.instantiate(*family->head(), std::move(*trace), call.arguments, call.modes);
    if (!entry->compiled()) {
      specialise(entry->first_break().value_or(GraphBreak{}).reason);
      return nullptr;
    }
    const auto built = entry->record().kernel_origins();
    family->head()->change_record([&](EntryReport& record) {
      ++record.instantiations;
      record.instantiation_seconds += stopwatch.seconds();
      record.built_for_instantiations += built.built + built.disk;
    });
    entry->join_family(family->head());
    frontend::Counters::add(counters_.shapes);
    add(entry);
    return entry;
  }
  return nullptr;
}

Function::Entries Function::alike(const Flat& arguments, const frontend::Modes& modes) const {
  Entries found;
  if (!options_.dynamic.value_or(true) || !specialised_.empty() || repeats_a_tensor(arguments)) return found;
  const auto entries = entries_.load(std::memory_order_acquire);
  std::ranges::copy_if(*entries, std::back_inserter(found), [&](const auto& entry) {
    return !is_instance(*entry) && entry->compiled() && entry->paths() == nullptr &&
           !entry->replayable().optimizers->steps() && entry->guards().fit_but_for_sizes(arguments, modes);
  });
  return found;
}

std::shared_ptr<ShapeFamily> Function::join(const Entries& alike, const frontend::Captured& captured,
                                            const Flat& arguments) {
  if (captured.optimizers->steps()) return nullptr;  // numbers of its own on every call
  const auto returns_the_same = [&](const Entry& entry) { return entry.replayable().structure == captured.structure; };
  for (const auto& family : families_) {
    const bool is_alike = std::ranges::find(alike, family->head()) != alike.end();
    if (!is_alike || !returns_the_same(*family->head())) continue;
    const auto [joined, refusal] = family->add(captured.trace, arguments);
    if (joined == ShapeFamily::Joined::solved_again) drop_instances(family->head().get(), false);
    if (joined != ShapeFamily::Joined::refused) {
      family->head()->guards().free_moved(arguments);
      return family;
    }
    if (!refusal.evidence) continue;
    specialise(refusal.reason);
    return nullptr;
  }
  for (const auto& entry : alike) {
    if (entry->head() != nullptr || !returns_the_same(*entry)) continue;
    auto made = ShapeFamily::make(entry->replayable().trace, captured.trace);
    if (auto* family = std::get_if<std::shared_ptr<ShapeFamily>>(&made)) {
      entry->guards().free_moved(arguments);
      (*family)->set_founder(entry);
      return std::move(*family);
    }
    const auto& refusal = std::get<ShapeFamily::Refusal>(made);
    if (!refusal.evidence) continue;
    specialise(refusal.reason);
    return nullptr;
  }
  return nullptr;
}

void Function::settle(const std::shared_ptr<Entry>& entry, const std::shared_ptr<ShapeFamily>& family) {
  if (!entry->compiled()) return specialise(entry->first_break().value_or(GraphBreak{}).reason);
  const bool founds = family->head() == nullptr;
  if (founds) {
    entry->guards().free_as(family->founder()->guards());
    entry->lead_family();
    family->set_head(entry);
    family->set_promises(promises_);
    families_.push_back(family);
  } else {
    entry->guards().free_as(family->head()->guards());
    entry->join_family(family->head());
  }
  family->head()->change_record([&](EntryReport& record) {
    record.signature = family->signature();
    record.dynamic = family->describe();
  });
}

void Function::after_verification(const Entry& entry, const Flat& arguments) {
  const auto family = std::ranges::find_if(families_, [&](const auto& f) { return f->head().get() == entry.head(); });
  if (!entry.compiled()) return specialise(entry.first_break().value_or(GraphBreak{}).reason);
  if (family != families_.end()) (*family)->head()->guards().free_moved(arguments);
}

void Function::drop_instances(const Entry* head, bool with_head) {
  const auto entries = entries_.load(std::memory_order_acquire);
  auto next = std::make_shared<Entries>();
  for (const auto& entry : *entries) {
    if (entry->head() != head || (entry.get() == head && !with_head)) {
      next->push_back(entry);
    } else {
      retire(*entry, "retired: " + specialised_);
    }
  }
  publish(std::move(next));
}

void Function::specialise(const std::string& reason) {
  specialised_ = "every shape is compiled for itself: " + reason;
  add_note(specialised_);
  for (const auto& family : families_) drop_instances(family->head().get(), true);
  families_.clear();
}

void Function::specialise_if_idle(const std::string& reason) {
  const std::unique_lock lock(building_, std::try_to_lock);
  if (lock) specialise(reason);
}

bool Function::has_room(const Entries& entries) const {
  size_t instances = 0;
  size_t buffers = 0;
  for (const auto& entry : entries) {
    if (!is_instance(*entry)) continue;
    ++instances;
    if (entry->compiled()) buffers += entry->replayable().plan->buffers.size();
  }
  const size_t most = options_.mode == Mode::Default ? max_instances : max_recorded_instances;
  return instances <= 1 || (instances <= most && buffers <= max_instance_buffers);
}

void Function::make_room() {
  const auto entries = entries_.load(std::memory_order_acquire);
  if (has_room(*entries)) return;
  auto next = std::make_shared<Entries>(*entries);
  auto oldest = next->end();
  for (auto entry = next->begin(); entry != next->end(); ++entry) {
    if (!is_instance(**entry)) continue;
    if (oldest == next->end() || (*entry)->last_call() < (*oldest)->last_call()) oldest = entry;
  }
  next->erase(oldest);
  publish(std::move(next));
}

}  // namespace sinter::detail
