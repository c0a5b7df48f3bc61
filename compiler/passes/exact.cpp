#include "compiler/passes/exact.h"
#include "compiler/support/planted.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace sinter::passes {
namespace {

using namespace ir;

/// Bits of the integers a dtype holds without a gap, counted from 0; sign apart.
int exact_bits(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 53;
    case DType::f32:
      return 24;
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    case DType::i64:
      return 63;
    case DType::i32:
      return 31;
    case DType::i16:
      return 15;
    case DType::i8:
      return 7;
    case DType::u8:
      return 8;
    case DType::b8:
      return 1;
    default:
      return 0;
  }
}

double number_of(const Arg& arg) {
  if (const auto* flag = std::get_if<bool>(&arg.data)) return *flag ? 1 : 0;
  if (const auto* integer = std::get_if<int64_t>(&arg.data)) return static_cast<double>(*integer);
  return std::get<double>(arg.data);
}

bool is_number(const Arg& arg, double wanted) {
  if (!arg.is_scalar()) return false;
  const double number = number_of(arg);
  return number == wanted && std::signbit(number) == std::signbit(wanted);
}

RefValue to_reference(const Arg& arg, DType dtype) {
  if (is_float(dtype)) return number_of(arg);
  if (const auto* integer = std::get_if<int64_t>(&arg.data)) return *integer;
  return static_cast<int64_t>(number_of(arg));
}

Arg from_reference(const RefValue& value, DType dtype) {
  if (const auto* real = std::get_if<double>(&value)) {
    return {dtype == DType::f32 ? static_cast<double>(static_cast<float>(*real)) : *real};
  }
  const int64_t integer = std::get<int64_t>(value);
  if (dtype == DType::b8) return {integer != 0};
  return {integer};
}

}  // namespace

bool holds_exactly(DType to, DType from) {
  if (to == from || from == DType::b8) return true;
  if (to == DType::b8) return false;
  if (is_float(from)) return (to == DType::f32 && is_half(from)) || to == DType::f64;
  const bool loses_sign = to == DType::u8;
  return !loses_sign && exact_bits(to) >= exact_bits(from);
}

bool is_commutative(std::string_view op) {
  constexpr std::array<std::string_view, 8> ops = {"add", "mul", "maximum",     "minimum",
                                                   "eq",  "ne",  "bitwise_and", "bitwise_or"};
  return std::find(ops.begin(), ops.end(), op) != ops.end() || (planted(Bug::operands_swapped) && op == "sub");
}

const ValueId* unchanged_operand(const Graph& graph, const Node& node) {
  if (node.args.size() != 2 || node.args[0].value() == nullptr || !node.args[1].is_scalar()) return nullptr;
  const std::string_view op = row(node.as<Primitive>()->op).name;
  const bool real = is_float(graph.type(node.results[0]).dtype);
  const Arg& number = node.args[1];
  const bool unchanged = ((op == "mul" || op == "div" || op == "ratio") && is_number(number, 1)) ||
                         (op == "sub" && is_number(number, 0.0)) ||
                         (op == "add" && is_number(number, real ? -0.0 : 0.0));
  return unchanged ? node.args[0].value() : nullptr;
}

std::optional<Arg> convert_exactly(const Arg& number, DType dtype) {
  if (is_half(dtype) || !is_kernel_dtype(dtype)) return std::nullopt;
  if (is_float(dtype)) return from_reference(number_of(number), dtype);
  if (dtype == DType::b8) return Arg{number_of(number) != 0};
  if (std::holds_alternative<double>(number.data)) return std::nullopt;
  const std::array<RefValue, 1> args = {to_reference(number, DType::i64)};
  return from_reference(row(op_named("cast")).native().reference(args, dtype), dtype);
}

std::optional<Arg> evaluate_numbers(const Node& node, DType dtype) {
  const OpRow& op = row(node.as<Primitive>()->op);
  const bool tells_dtype = op.rule == TypeRule::same || op.rule == TypeRule::floating ||
                           op.rule == TypeRule::float_like || op.rule == TypeRule::integral;
  if (!tells_dtype || is_half(dtype)) return std::nullopt;
  std::vector<RefValue> args;
  for (const Arg& arg : node.args) {
    const auto converted = convert_exactly(arg, dtype);
    if (!converted) return std::nullopt;
    args.push_back(to_reference(*converted, dtype));
  }
  const bool divides = op.domain == Domain::nonzero_second && !is_float(dtype);
  if (divides && is_number(node.args[1], 0)) return std::nullopt;
  return from_reference(op.native().reference(args, dtype), dtype);
}

}  // namespace sinter::passes
