#include "frontend/model_file/number_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <utility>

namespace sinter::frontend {
namespace {

using c10::IValue;
using Operands = std::span<const IValue>;

int64_t integer(const IValue& value) {
  if (value.isBool()) return value.toBool() ? 1 : 0;
  return value.toInt();
}

double real(const IValue& value) { return value.isDouble() ? value.toDouble() : static_cast<double>(integer(value)); }

bool any_real(Operands operands) {
  return std::ranges::any_of(operands, [](const IValue& value) { return value.isDouble(); });
}

template <class Operator>
IValue arithmetic(Operands operands) {
  if (any_real(operands)) return Operator()(real(operands[0]), real(operands[1]));
  return Operator()(integer(operands[0]), integer(operands[1]));
}

struct Larger {
  auto operator()(auto a, auto b) const { return std::max(a, b); }
};
struct Smaller {
  auto operator()(auto a, auto b) const { return std::min(a, b); }
};

void check_divisor(const IValue& divisor) {
  if (real(divisor) == 0) throw std::invalid_argument("a size is divided by zero");
}

int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

IValue floordiv(Operands operands) {
  check_divisor(operands[1]);
  if (any_real(operands)) return std::floor(real(operands[0]) / real(operands[1]));
  return floor_of(integer(operands[0]), integer(operands[1]));
}

IValue truediv(Operands operands) {
  check_divisor(operands[1]);
  return real(operands[0]) / real(operands[1]);
}

/// Python's remainder has the sign of the divisor.
IValue mod(Operands operands) {
  check_divisor(operands[1]);
  if (!any_real(operands)) {
    const int64_t a = integer(operands[0]);
    const int64_t b = integer(operands[1]);
    return a - b * floor_of(a, b);
  }
  const double a = real(operands[0]);
  const double b = real(operands[1]);
  return a - b * std::floor(a / b);
}

IValue pow(Operands operands) {
  if (any_real(operands) || integer(operands[1]) < 0) return std::pow(real(operands[0]), real(operands[1]));
  int64_t result = 1;
  const int64_t base = integer(operands[0]);
  for (int64_t left = integer(operands[1]); left > 0; --left) {
    if (__builtin_mul_overflow(result, base, &result)) throw std::invalid_argument("a power of sizes overflows");
  }
  return result;
}

IValue neg(Operands operands) {
  if (any_real(operands)) return -real(operands[0]);
  return -integer(operands[0]);
}

IValue truncated(Operands operands) {
  return operands[0].isDouble() ? static_cast<int64_t>(std::trunc(operands[0].toDouble())) : integer(operands[0]);
}

bool holds(const IValue& value) { return real(value) != 0; }

constexpr std::array<std::pair<std::string_view, NumberOp>, 31> kOps{{
    {"_operator.add", arithmetic<std::plus<>>},
    {"_operator.sub", arithmetic<std::minus<>>},
    {"_operator.mul", arithmetic<std::multiplies<>>},
    {"_operator.eq", arithmetic<std::equal_to<>>},
    {"_operator.ne", arithmetic<std::not_equal_to<>>},
    {"_operator.lt", arithmetic<std::less<>>},
    {"_operator.le", arithmetic<std::less_equal<>>},
    {"_operator.gt", arithmetic<std::greater<>>},
    {"_operator.ge", arithmetic<std::greater_equal<>>},
    {"_operator.floordiv", floordiv},
    {"_operator.truediv", truediv},
    {"_operator.mod", mod},
    {"_operator.pow", pow},
    {"_operator.neg", neg},
    {"_operator.pos", [](Operands operands) { return operands[0]; }},
    {"_operator.and_", [](Operands operands) { return IValue(holds(operands[0]) && holds(operands[1])); }},
    {"_operator.or_", [](Operands operands) { return IValue(holds(operands[0]) || holds(operands[1])); }},
    {"_operator.lshift", [](Operands operands) { return IValue(integer(operands[0]) << integer(operands[1])); }},
    {"_operator.rshift", [](Operands operands) { return IValue(integer(operands[0]) >> integer(operands[1])); }},
    {"math.trunc", truncated},
    {"math.ceil", [](Operands operands) { return IValue(static_cast<int64_t>(std::ceil(real(operands[0])))); }},
    {"math.floor", [](Operands operands) { return IValue(static_cast<int64_t>(std::floor(real(operands[0])))); }},
    {"torch.sym_int", truncated},
    {"torch.sym_float", [](Operands operands) { return IValue(real(operands[0])); }},
    {"torch.sym_not", [](Operands operands) { return IValue(!holds(operands[0])); }},
    {"torch.sym_max", arithmetic<Larger>},
    {"torch.sym_min", arithmetic<Smaller>},
    {"torch.sym_ite", [](Operands operands) { return holds(operands[0]) ? operands[1] : operands[2]; }},
    {"torch.sym_sqrt", [](Operands operands) { return IValue(std::sqrt(real(operands[0]))); }},
    {"torch._sym_sqrt", [](Operands operands) { return IValue(std::sqrt(real(operands[0]))); }},
    {"_operator.xor", [](Operands operands) { return IValue(integer(operands[0]) ^ integer(operands[1])); }},
}};

}  // namespace

NumberOp find_number_op(std::string_view target) {
  const auto found = std::ranges::find(kOps, target, &std::pair<std::string_view, NumberOp>::first);
  return found == kOps.end() ? nullptr : found->second;
}

}  // namespace sinter::frontend
