#include "frontend/trace/numbers.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/ir/reference.h"
#include "compiler/passes/aten.h"
#include "frontend/torch/convert.h"

namespace sinter::frontend {
namespace {

/// Positions of the numbers that a kernel takes: those beside the first operand, which are rounded to its dtype, and
/// from `scales` on those that scale another argument.
struct Row {
  std::string_view op;
  uint32_t first = 0, last = 0;
  uint32_t scales = 4;
  bool takes_all = false;  ///< ATen's kernels refuse none
};
constexpr std::array rows{Row{"aten::add", 1, 2, 2},
                          Row{"aten::sub", 1, 2, 2},
                          Row{"aten::rsub", 1, 2, 2},
                          Row{.op = "aten::mul", .first = 1, .last = 1, .takes_all = true},
                          Row{.op = "aten::div", .first = 1, .last = 1, .takes_all = true},
                          Row{"aten::clamp", 1, 2},
                          Row{"aten::clamp_min", 1, 1},
                          Row{"aten::clamp_max", 1, 1},
                          Row{"aten::addcmul", 3, 3, 3},
                          Row{"aten::addcdiv", 3, 3, 3},
                          Row{"aten::fill", 1, 1},
                          Row{"aten::lerp", 2, 2},
                          Row{"aten::masked_fill", 2, 2},
                          Row{"aten::lt", 1, 1},
                          Row{"aten::le", 1, 1},
                          Row{"aten::gt", 1, 1},
                          Row{"aten::ge", 1, 1},
                          Row{"aten::eq", 1, 1},
                          Row{"aten::ne", 1, 1}};

/// A scale is given wide and rounded where it is used. Beside tensors without dims it would widen what they give.
ir::DType dtype_of(const Row& row, uint32_t position, const at::Tensor& operand) {
  const ir::DType own = operand.scalar_type() == at::kDouble ? ir::DType::f64 : ir::DType::f32;
  return position >= row.scales && operand.dim() > 0 ? ir::DType::f64 : own;
}

/// Halves take numbers as f32, which beside those without dims would widen what they give, and as a weight would be a
/// tensor, which is rounded.
bool computes_with_numbers(const Row& row, const at::Tensor& operand) {
  const ir::DType dtype = frontend::dtype_of(operand.scalar_type());
  if (ir::is_half(dtype)) return operand.dim() > 0 && row.op != "aten::lerp";
  return ir::is_float(dtype);
}

double largest_of(const Row& row, at::ScalarType dtype) {
  return ir::ref::highest_of(row.takes_all ? ir::DType::f64 : frontend::dtype_of(dtype));
}

}  // namespace

std::vector<StepNumber> numbers_of(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments,
                                   std::span<const uint32_t> words) {
  std::string_view base = passes::base_name(facts.name);
  if (!facts.mutates.empty() && base.ends_with('_')) base.remove_suffix(1);
  const auto* row = std::ranges::find(rows, base, [](const Row& candidate) { return candidate.op; });
  const bool has_out = !facts.mutates.empty() && facts.mutates.front() != 0;
  if (row == rows.end() || has_out || !arguments[0].isTensor()) return {};
  const at::Tensor& operand = arguments[0].toTensor();
  if (!computes_with_numbers(*row, operand) || wrapped_number(operand)) return {};
  std::vector<StepNumber> numbers;
  for (uint32_t i = row->first; i <= row->last && i < arguments.size(); ++i) {
    const c10::IValue& argument = arguments[i];
    std::optional<ir::Scalar> number;
    if (argument.isTensor() && argument.toTensor().defined()) number = wrapped_number(argument.toTensor());
    if (argument.isDouble()) number = argument.toDouble();
    if (argument.isInt()) number = argument.toInt();
    if (!number || std::holds_alternative<bool>(*number)) continue;
    numbers.push_back({.word = words[i],
                       .argument = i,
                       .dtype = dtype_of(*row, i, operand),
                       .integer = std::holds_alternative<int64_t>(*number),
                       .most = largest_of(*row, operand.scalar_type())});
  }
  // A result of another dtype than the first operand's would take the number in that one. Masks have no part in it.
  for (const c10::IValue& argument : arguments) {
    if (row->op == "aten::masked_fill") break;
    if (!argument.isTensor() || !argument.toTensor().defined() || wrapped_number(argument.toTensor())) continue;
    if (argument.toTensor().scalar_type() != operand.scalar_type()) return {};
  }
  return numbers;
}

}  // namespace sinter::frontend
