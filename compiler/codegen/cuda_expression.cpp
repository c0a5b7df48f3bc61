#include "compiler/codegen/cuda_expression.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "compiler/codegen/cuda_precision.h"
#include "compiler/support/errors.h"
#include "compiler/support/planted.h"

namespace sinter::codegen {
namespace {

using kernel::Compute;
using kernel::Immediate;
using kernel::Kernel;
using kernel::Slot;

double as_double(const ir::Scalar& value) {
  return std::visit([](auto number) { return static_cast<double>(number); }, value);
}

int64_t as_integer(const ir::Scalar& value) {
  return std::visit([](auto number) { return static_cast<int64_t>(number); }, value);
}

std::string special(double value, bool is_double) {
  if (std::isnan(value)) return is_double ? "__longlong_as_double(0x7ff8000000000000ll)" : "__int_as_float(0x7fc00000)";
  if (value > 0) return is_double ? "__longlong_as_double(0x7ff0000000000000ll)" : "__int_as_float(0x7f800000)";
  return is_double ? "(-__longlong_as_double(0x7ff0000000000000ll))" : "(-__int_as_float(0x7f800000))";
}

template <class Float>
std::string float_literal(Float value) {
  constexpr bool is_double = std::is_same_v<Float, double>;
  if (!std::isfinite(value)) return special(static_cast<double>(value), is_double);
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!is_double) text += 'f';
  return std::signbit(value) ? fmt::format("({})", text) : text;
}

std::string integer_literal(int64_t value, ir::DType dtype) {
  if (dtype == ir::DType::i64) {
    if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
    return value < 0 ? fmt::format("({}ll)", value) : fmt::format("{}ll", value);
  }
  if (dtype == ir::DType::i32) {
    const auto narrow = static_cast<int32_t>(value);
    if (narrow == std::numeric_limits<int32_t>::min()) return "(-2147483647 - 1)";
    return narrow < 0 ? fmt::format("({})", narrow) : fmt::format("{}", narrow);
  }
  return fmt::format("({})({})", cuda_type(dtype), value);
}

const Compute* compute_at(const Kernel& kernel, Slot slot) {
  return std::get_if<Compute>(&kernel.body[slot].operation);
}
const Immediate* immediate_at(const Kernel& kernel, Slot slot) {
  return std::get_if<Immediate>(&kernel.body[slot].operation);
}

std::string_view op_name(const Compute& compute) { return ir::row(compute.op).name; }

/// The operand beside a literal 1 in `erf(z) + 1`; no value when the slot is something else.
const Compute* erf_plus_one(const Kernel& kernel, Slot slot) {
  const Compute& add = *compute_at(kernel, slot);
  if (op_name(add) != "add") return nullptr;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Immediate* one = immediate_at(kernel, add.operands[1 - side]);
    const Compute* erf = compute_at(kernel, add.operands[side]);
    if (one != nullptr && as_double(one->value) == 1.0 && erf != nullptr && op_name(*erf) == "erf") return erf;
  }
  return nullptr;
}

/// ATen divides by a number by multiplying with its reciprocal, rounded to the computation's type; so does this.
/// Quotients that are rounded to integers keep the division.
bool divides_by_number(const Kernel& kernel, Slot slot) {
  const Compute& compute = *compute_at(kernel, slot);
  if (op_name(compute) != "div" || immediate_at(kernel, compute.operands[1]) == nullptr) return false;
  for (Slot later = slot + 1; later < kernel.body.size(); ++later) {
    const Compute* use = compute_at(kernel, later);
    if (use == nullptr || (op_name(*use) != "floor" && op_name(*use) != "trunc")) continue;
    if (use->operands[0] == slot) return false;
  }
  return true;
}

Expression reciprocal_product(const Kernel& kernel, Slot slot) {
  const Compute& compute = *compute_at(kernel, slot);
  const double divisor = as_double(immediate_at(kernel, compute.operands[1])->value);
  const bool is_double = kernel.body[slot].dtype == ir::DType::f64;
  const std::string factor =
      is_double ? float_literal(1.0 / divisor) : float_literal(1.0F / static_cast<float>(divisor));
  return {.text = "{0} * " + factor, .operands = {compute.operands[0]}};
}

/// A plain conversion where one does what `convert` does, which costs the compiler less.
std::string_view cast_text(ir::DType from, ir::DType to) {
  using enum ir::DType;
  if (from == f16 && to == f32) return "f16_to_float({0})";
  if (from == bf16 && to == f32) return "bf16_to_float({0})";
  if (from == f32 && to == f16) return "float_to_f16({0})";
  if (from == f32 && to == bf16) return "float_to_bf16({0})";
  if (from == to) return "{0}";
  if (ir::is_half(from) || ir::is_half(to)) return "convert<{t}>({0})";
  if (to == b8) return "{0} != 0";
  return ir::is_float(from) && !ir::is_float(to) ? "convert<{t}>({0})" : "({t}){0}";
}

Expression expression_of(const Kernel& kernel, Slot slot, bool half) {
  const Compute& compute = *compute_at(kernel, slot);
  if (ir::row(compute.op).rule == ir::TypeRule::cast) {
    const auto text = cast_text(kernel.body[compute.operands[0]].dtype, kernel.body[slot].dtype);
    return {.text = std::string(text), .operands = compute.operands};
  }
  if (divides_by_number(kernel, slot)) return reciprocal_product(kernel, slot);
  if (half) {
    if (const Compute* erf = erf_plus_one(kernel, slot)) {
      return {.text = "half_one_plus_erf({0})", .operands = {erf->operands[0]}};
    }
    if (const auto text = half_text(op_name(compute)); !text.empty()) {
      return {.text = std::string(text), .operands = compute.operands};
    }
  }
  const auto text = ir::row(compute.op).native().cuda_text(computation_dtype(kernel, slot));
  if (planted(Bug::cuda_operands_swapped) && op_name(compute) == "sub") {
    return {.text = std::string(text), .operands = {compute.operands[1], compute.operands[0]}};
  }
  return {.text = std::string(text), .operands = compute.operands};
}

}  // namespace

ir::DType computation_dtype(const Kernel& kernel, Slot slot) {
  const Compute& compute = *compute_at(kernel, slot);
  if (ir::row(compute.op).rule == ir::TypeRule::cast) return kernel.body[slot].dtype;
  return kernel.body[compute.operands.back()].dtype;
}

std::string_view cuda_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::f64:
      return "double";
    case ir::DType::f32:
      return "float";
    case ir::DType::f16:
      return "f16";
    case ir::DType::bf16:
      return "bf16";
    case ir::DType::i64:
      return "long long";
    case ir::DType::i32:
      return "int";
    case ir::DType::i16:
      return "short";
    case ir::DType::i8:
      return "signed char";
    case ir::DType::u8:
      return "unsigned char";
    case ir::DType::b8:
      return "bool";
    default:
      throw InternalError("codegen", fmt::format("no CUDA type for dtype {}", ir::name(dtype)));
  }
}

std::string cuda_cast(const std::string& operand, ir::DType from, ir::DType to) {
  return render(cast_text(from, to), cuda_type(to), {operand});
}

std::string cuda_literal(const ir::Scalar& value, ir::DType dtype) {
  if (dtype == ir::DType::f64) return float_literal(as_double(value));
  if (dtype == ir::DType::b8) return as_double(value) != 0 ? "true" : "false";
  if (ir::is_float(dtype)) return float_literal(static_cast<float>(as_double(value)));
  return integer_literal(as_integer(value), dtype);
}

std::vector<Expression> cuda_expressions(const Kernel& kernel) {
  const auto half = half_accurate_slots(kernel);
  std::vector<Expression> all(kernel.body.size());
  for (Slot slot = 0; slot < kernel.body.size(); ++slot) {
    if (compute_at(kernel, slot) != nullptr) all[slot] = expression_of(kernel, slot, half[slot]);
    const auto* load = std::get_if<kernel::Load>(&kernel.body[slot].operation);
    if (load != nullptr && load->guard) all[slot] = {.text = {}, .operands = {*load->guard}};
    if (const auto* gather = std::get_if<kernel::Gather>(&kernel.body[slot].operation)) {
      all[slot] = {.text = {}, .operands = positions_of(*gather)};
    }
    if (const auto* reduce = std::get_if<kernel::Reduce>(&kernel.body[slot].operation)) {
      all[slot] = {.text = {}, .operands = {reduce->operand}};
    }
  }
  return all;
}

Operands operands_of(const std::vector<Expression>& expressions) {
  Operands operands;
  for (const Expression& expression : expressions) operands.push_back(expression.operands);
  return operands;
}

std::string render(std::string_view text, std::string_view type, const std::vector<std::string>& operands) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '{' || at + 2 >= text.size() || text[at + 2] != '}') {
      out += text[at];
      continue;
    }
    out += text[at + 1] == 't' ? type : operands.at(static_cast<size_t>(text[at + 1] - '0'));
    at += 2;
  }
  return out;
}

}  // namespace sinter::codegen
