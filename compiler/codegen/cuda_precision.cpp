#include "compiler/codegen/cuda_precision.h"

#include <algorithm>
#include <array>
#include <utility>

#include "compiler/ir/continuous.h"

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

}  // namespace

std::vector<bool> half_accurate_slots(const kernel::Kernel& kernel) {
  const size_t count = kernel.body.size();
  if (!kernel.half_accuracy) return std::vector<bool>(count, false);
  std::vector<bool> half(count, true);
  for (const auto& store : kernel.stores) half[store.value] = ir::is_half(kernel.body[store.value].dtype);
  for (size_t slot = count; slot-- > 0;) {
    const auto& instruction = kernel.body[slot];
    if (const auto* reduce = std::get_if<kernel::Reduce>(&instruction.operation)) half[reduce->operand] = false;
    const auto* compute = std::get_if<Compute>(&instruction.operation);
    if (compute == nullptr) continue;
    const bool narrow = instruction.dtype == ir::DType::f32 || ir::is_half(instruction.dtype);
    if (narrow && half[slot] && ir::is_continuous(compute->op)) continue;
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
