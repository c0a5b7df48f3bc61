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

bool is_narrow(ir::DType dtype) { return dtype == ir::DType::f32 || ir::is_half(dtype); }

/// By slot: true where nothing that follows from it jumps, so that a small error of it stays one.
std::vector<bool> smooth_slots(const kernel::Kernel& kernel) {
  std::vector<bool> smooth(kernel.body.size(), true);
  for (size_t slot = kernel.body.size(); slot-- > 0;) {
    const auto& instruction = kernel.body[slot];
    const auto* compute = std::get_if<Compute>(&instruction.operation);
    if (const auto* reduce = std::get_if<kernel::Reduce>(&instruction.operation)) {
      if (!smooth[slot]) smooth[reduce->operand] = false;
    } else if (compute != nullptr) {
      if (smooth[slot] && ir::is_continuous(compute->op) && ir::is_float(instruction.dtype)) continue;
      for (const Slot operand : compute->operands) smooth[operand] = false;
    }
  }
  return smooth;
}

}  // namespace

std::vector<bool> half_accurate_slots(const kernel::Kernel& kernel) {
  const size_t count = kernel.body.size();
  if (!kernel.half_accuracy) return std::vector<bool>(count, false);
  // What was rounded to halves has their error, whatever is computed from it.
  const std::vector<bool> smooth = smooth_slots(kernel);
  const auto is_rounded = [&](Slot slot) { return ir::is_half(kernel.body[slot].dtype) && smooth[slot]; };
  std::vector<bool> half(count, true);
  const auto ask_for_more = [&](Slot slot) { half[slot] = is_rounded(slot); };
  for (const auto& store : kernel.stores) ask_for_more(store.value);
  for (size_t slot = count; slot-- > 0;) {
    const auto& instruction = kernel.body[slot];
    if (const auto* reduce = std::get_if<kernel::Reduce>(&instruction.operation)) ask_for_more(reduce->operand);
    const auto* compute = std::get_if<Compute>(&instruction.operation);
    if (compute == nullptr) continue;
    if (is_narrow(instruction.dtype) && half[slot] && ir::is_continuous(compute->op)) continue;
    for (const Slot operand : compute->operands) ask_for_more(operand);
  }
  for (size_t slot = 0; slot < count; ++slot) half[slot] = half[slot] && kernel.body[slot].dtype == ir::DType::f32;
  return half;
}

std::string_view half_text(std::string_view op) {
  const auto found = std::ranges::find(half_texts, op, &std::pair<std::string_view, std::string_view>::first);
  return found == half_texts.end() ? std::string_view{} : found->second;
}

}  // namespace sinter::codegen
