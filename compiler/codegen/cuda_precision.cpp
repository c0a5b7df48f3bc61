#include "compiler/codegen/cuda_precision.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sinter::codegen {
namespace {

using kernel::Compute;
using kernel::Slot;

/// Helpers of cuda_half.cuh, by IR op.
constexpr auto half_texts = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"div", "half_divide({0}, {1})"},
    {"erf", "half_erf({0})"},
    {"exp", "half_exp({0})"},
    {"sqrt", "half_sqrt({0})"},
    {"tanh", "half_tanh({0})"},
});

/// Ops that turn a small error of an operand into a large one of the result.
constexpr auto discontinuous =
    std::to_array<std::string_view>({"ceil", "copysign", "floor", "fmod", "nextafter", "round", "trunc"});

bool is_continuous(std::string_view op) { return std::ranges::find(discontinuous, op) == discontinuous.end(); }

/// Slots whose value is used by instructions (not by stores).
std::vector<bool> used_by_instructions(const kernel::Kernel& kernel) {
  std::vector<bool> used(kernel.body.size(), false);
  for (const auto& instruction : kernel.body) {
    const auto* compute = std::get_if<Compute>(&instruction.operation);
    if (compute == nullptr) continue;
    for (const Slot operand : compute->operands) used[operand] = true;
  }
  return used;
}

}  // namespace

std::vector<bool> half_accurate_slots(const kernel::Kernel& kernel) {
  const size_t count = kernel.body.size();
  if (!kernel.half_accuracy) return std::vector<bool>(count, false);
  const auto used = used_by_instructions(kernel);
  std::vector<bool> half(count, true);
  for (const auto& store : kernel.stores) half[store.value] = ir::is_half(kernel.body[store.value].dtype);
  for (size_t slot = count; slot-- > 0;) {
    const auto& instruction = kernel.body[slot];
    const auto* compute = std::get_if<Compute>(&instruction.operation);
    if (compute == nullptr) continue;
    const bool rounds = ir::is_half(instruction.dtype) && !used[slot];
    const bool passes_on =
        instruction.dtype == ir::DType::f32 && half[slot] && is_continuous(ir::row(compute->op).name);
    if (rounds || passes_on) continue;
    for (const Slot operand : compute->operands) half[operand] = false;
  }
  for (size_t slot = 0; slot < count; ++slot) half[slot] = half[slot] && kernel.body[slot].dtype == ir::DType::f32;
  return half;
}

std::string_view half_text(std::string_view op) {
  const auto found = std::ranges::find(half_texts, op, &std::pair<std::string_view, std::string_view>::first);
  return found == half_texts.end() ? std::string_view{} : found->second;
}

}  // namespace sinter::codegen
