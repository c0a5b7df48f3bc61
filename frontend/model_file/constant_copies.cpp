#include "frontend/model_file/constant_copies.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <string>

namespace sinter::frontend {
namespace {

template <class Visit>
void for_each_written(const StepView& step, const Visit& visit) {
  if (step.calls_graphs) std::ranges::for_each(step.reads, visit);
  if (step.call == nullptr) return;
  const auto& declared = step.call->schema().arguments();
  for (size_t i = 0; i < declared.size(); ++i) {
    const c10::AliasInfo* alias = declared[i].alias_info();
    if (alias != nullptr && alias->isWrite()) for_each_slot(step.call->arguments()[i], visit);
  }
}

std::optional<DeviceCopy> copied_by(const StepView& step) {
  return step.call == nullptr ? std::nullopt : frontend::copied_by(*step.call, step.outputs);
}

/// Values by the memory that they may share. A copy that names a device is taken for memory of its own, which it is not
/// where its argument lies there: `Constants` looks after that.
class Sharing {
 public:
  Sharing(std::span<const StepView> steps, size_t slots) : parent_(slots) {
    std::iota(parent_.begin(), parent_.end(), uint32_t{0});
    for (const StepView& step : steps) {
      if (step.call != nullptr && !copied_by(step)) join_aliases(step);
    }
  }

  [[nodiscard]] uint32_t memory_of(Slot slot) const {
    uint32_t root = slot.index;
    while (parent_[root] != root) root = parent_[root];
    return root;
  }

 private:
  void join_aliases(const StepView& step) {
    const auto& declared = step.call->schema().arguments();
    for (size_t i = 0; i < declared.size(); ++i) {
      if (declared[i].alias_info() == nullptr) continue;
      for_each_slot(step.call->arguments()[i], [&](Slot argument) {
        for_each_slot(step.outputs, [&](Slot given) { parent_[memory_of(given)] = memory_of(argument); });
      });
    }
  }

  std::vector<uint32_t> parent_;
};

/// The steps that do the same in every call: what they read and write is made by such steps alone. Memory counts as
/// changed where any other step writes to it, where the graph gives it away, and where it is written after a copy of
/// it.
class Constants {
 public:
  Constants(std::span<const StepView> steps, std::span<const ExportedArgument> results, size_t slots)
      : steps_(steps), sharing_(steps, slots), changed_(slots, false) {
    for_each_slot(results, [&](Slot slot) { changed_[sharing_.memory_of(slot)] = true; });
    while (changes_more()) continue;
  }

  [[nodiscard]] const std::vector<size_t>& found() const { return found_; }
  [[nodiscard]] const Sharing& sharing() const { return sharing_; }

 private:
  /// One walk through the steps. True where memory that it took for unchanged is changed after all.
  bool changes_more() {
    found_.clear();
    known_.assign(changed_.size(), false);
    copied_.assign(changed_.size(), false);
    bool more = false;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (is_constant(steps_[i])) {
        note(i);
      } else {
        more = change_what_is_written(steps_[i]) || more;
      }
    }
    return more;
  }

  [[nodiscard]] bool is_constant(const StepView& step) const {
    if (step.call == nullptr || !step.call->schema().name().starts_with("aten::") ||
        step.call->op().hasTag(at::Tag::nondeterministic_seeded)) {
      return false;
    }
    bool constant = std::ranges::all_of(step.reads, [&](Slot slot) { return known_[slot.index]; });
    for_each_slot(step.outputs, [&](Slot slot) { constant = constant && !changed_[sharing_.memory_of(slot)]; });
    for_each_written(step, [&](Slot slot) { constant = constant && !copied_[sharing_.memory_of(slot)]; });
    return constant;
  }

  void note(size_t index) {
    const StepView& step = steps_[index];
    found_.push_back(index);
    for_each_slot(step.outputs, [&](Slot slot) { known_[slot.index] = true; });
    if (const auto copy = copied_by(step)) {
      copied_[sharing_.memory_of(copy->from)] = copied_[sharing_.memory_of(copy->to)] = true;
    }
  }

  bool change_what_is_written(const StepView& step) {
    bool more = false;
    const auto change = [&](Slot slot) {
      const uint32_t memory = sharing_.memory_of(slot);
      more = more || !changed_[memory];
      changed_[memory] = true;
    };
    for_each_written(step, change);
    if (const auto copy = copied_by(step)) change(copy->from);  // may be its result, which may be written to
    return more;
  }

  std::span<const StepView> steps_;
  Sharing sharing_;
  std::vector<bool> changed_, copied_;  ///< by memory
  std::vector<bool> known_;             ///< by slot
  std::vector<size_t> found_;
};

/// Values that are wanted, and with them what the memory that they lie in holds.
class Wanted {
 public:
  Wanted(const Sharing& sharing, size_t slots) : sharing_(sharing), slots_(slots, false), memory_(slots, false) {}

  void add(const StepView& step) {
    for (const Slot slot : step.reads) slots_[slot.index] = memory_[sharing_.memory_of(slot)] = true;
  }
  [[nodiscard]] bool makes(const StepView& step) const {
    bool found = false;
    for_each_slot(step.outputs, [&](Slot slot) { found = found || slots_[slot.index]; });
    for_each_written(step, [&](Slot slot) { found = found || memory_[sharing_.memory_of(slot)]; });
    return found;
  }

 private:
  const Sharing& sharing_;
  std::vector<bool> slots_, memory_;
};

bool names_device(const ExportedArgument& argument) {
  return argument.constant() != nullptr && argument.constant()->isDevice();
}

}  // namespace

std::vector<size_t> steps_of_constant_copies(std::span<const StepView> steps, std::span<const ExportedArgument> results,
                                             size_t slots) {
  const Constants constants(steps, results, slots);
  Wanted wanted(constants.sharing(), slots);
  std::vector<size_t> found;
  for (const size_t index : std::views::reverse(constants.found())) {
    if (!copied_by(steps[index]) && !wanted.makes(steps[index])) continue;
    found.push_back(index);
    wanted.add(steps[index]);
  }
  std::ranges::reverse(found);
  return found;
}

std::vector<size_t> steps_without_use(std::span<const StepView> steps, std::span<const size_t> constant,
                                      std::span<const Slot> kept, size_t slots) {
  std::vector<bool> is_kept(slots, false), used(steps.size(), true);
  for (const Slot slot : kept) is_kept[slot.index] = true;
  for (const size_t index : constant) used[index] = false;

  const Sharing sharing(steps, slots);
  Wanted wanted(sharing, slots);
  const auto use = [&](size_t index) {
    StepView step = steps[index];
    std::erase_if(step.reads, [&](Slot slot) { return is_kept[slot.index]; });
    wanted.add(step);
    used[index] = true;
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    if (used[i]) use(i);
  }
  for (bool more = true; more;) {
    more = false;
    for (const size_t index : std::views::reverse(constant)) {
      if (used[index] || !wanted.makes(steps[index])) continue;
      use(index);
      more = true;
    }
  }
  std::vector<size_t> found;
  std::ranges::copy_if(constant, std::back_inserter(found), [&](size_t index) { return !used[index]; });
  return found;
}

std::optional<DeviceCopy> copied_by(const OperatorCall& call, std::span<const ExportedArgument> outputs) {
  const std::string& name = call.schema().name();
  if ((name != "aten::_to_copy" && name != "aten::to") || outputs.size() != 1) return std::nullopt;
  const Slot *from = call.arguments()[0].slot(), *to = outputs[0].slot();
  const bool found = from != nullptr && to != nullptr && std::ranges::any_of(call.arguments(), names_device);
  return found ? std::optional(DeviceCopy{*from, *to}) : std::nullopt;
}

}  // namespace sinter::frontend
