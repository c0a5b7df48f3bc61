#include "frontend/model_file/constant_copies.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <string>

namespace sinter::frontend {
namespace {

/// Values by what they may share memory with.
class Sharing {
 public:
  explicit Sharing(size_t slots) : parent_(slots), changes_(slots, false) {
    std::iota(parent_.begin(), parent_.end(), uint32_t{0});
  }

  void join(Slot a, Slot b) {
    const uint32_t first = root(a.index), second = root(b.index);
    parent_[second] = first;
    changes_[first] = changes_[first] || changes_[second];
  }
  void note_change(Slot slot) { changes_[root(slot.index)] = true; }
  [[nodiscard]] bool changes(Slot slot) const { return changes_[root(slot.index)]; }

 private:
  [[nodiscard]] uint32_t root(uint32_t slot) const {
    while (parent_[slot] != slot) slot = parent_[slot];
    return slot;
  }

  std::vector<uint32_t> parent_;
  std::vector<bool> changes_;
};

/// What shares memory, and what is written to or leaves the graph.
Sharing sharing_of(std::span<const StepView> steps, std::span<const ExportedArgument> results, size_t slots) {
  Sharing sharing(slots);
  for (const StepView& step : steps) {
    for (const Slot slot : step.handed_on) sharing.note_change(slot);
    if (step.call == nullptr) continue;
    const auto& declared = step.call->schema().arguments();
    for (size_t i = 0; i < declared.size(); ++i) {
      const c10::AliasInfo* alias = declared[i].alias_info();
      if (alias == nullptr) continue;
      for_each_slot(step.call->arguments()[i], [&](Slot argument) {
        if (alias->isWrite()) sharing.note_change(argument);
        for_each_slot(step.outputs, [&](Slot given) { sharing.join(argument, given); });
      });
    }
  }
  for_each_slot(results, [&](Slot slot) { sharing.note_change(slot); });
  return sharing;
}

bool is_pure(const c10::OperatorHandle& op) {
  return op.schema().name().starts_with("aten::") && !op.schema().is_mutable() &&
         !op.hasTag(at::Tag::nondeterministic_seeded);
}

/// The steps that give the same in every call.
std::vector<size_t> constant_steps(std::span<const StepView> steps, std::span<const ExportedArgument> results,
                                   size_t slots) {
  const Sharing sharing = sharing_of(steps, results, slots);
  std::vector<bool> known(slots, false);
  std::vector<size_t> found;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepView& step = steps[i];
    bool constant = step.call != nullptr && is_pure(step.call->op());
    if (!constant) continue;
    for_each_slot(step.call->arguments(), [&](Slot slot) { constant = constant && known[slot.index]; });
    for_each_slot(step.outputs, [&](Slot slot) { constant = constant && !sharing.changes(slot); });
    if (!constant) continue;
    found.push_back(i);
    for_each_slot(step.outputs, [&](Slot slot) { known[slot.index] = true; });
  }
  return found;
}

bool names_device(const ExportedArgument& argument) {
  return argument.constant() != nullptr && argument.constant()->isDevice();
}

}  // namespace

std::vector<size_t> steps_of_constant_copies(std::span<const StepView> steps, std::span<const ExportedArgument> results,
                                             size_t slots) {
  std::vector<bool> wanted(slots, false);
  std::vector<size_t> found;
  for (const size_t index : std::views::reverse(constant_steps(steps, results, slots))) {
    const StepView& step = steps[index];
    bool leads = copied_by(*step.call, step.outputs).has_value();
    for_each_slot(step.outputs, [&](Slot slot) { leads = leads || wanted[slot.index]; });
    if (!leads) continue;
    found.push_back(index);
    for_each_slot(step.call->arguments(), [&](Slot slot) { wanted[slot.index] = true; });
  }
  std::ranges::reverse(found);
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
