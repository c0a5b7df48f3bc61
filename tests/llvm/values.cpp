#include "tests/llvm/values.h"

#include <array>
#include <limits>

namespace sinter::test {

using ir::Domain;
using ir::DType;

namespace {

double draw_real(std::mt19937_64& random, Domain domain) {
  const auto between = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  switch (domain) {
    case Domain::positive:
      return between(0.01, 20);
    case Domain::unit_interval:
      return between(0, 1);
    case Domain::symmetric_unit:
      return between(-1, 1);
    case Domain::at_least_one:
      return between(1, 20);
    default:
      return between(-8, 8);
  }
}

double special_real(std::mt19937_64& random, DType dtype) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const double least = dtype == DType::f64 ? 0x1p-1074 : dtype == DType::f16 ? 0x1p-24 : 0x1p-130;
  // Their squares are finite: SLEEF squares what asinh and acosh get.
  const double largest = dtype == DType::f64 ? 0x1p500 : dtype == DType::f16 ? 65504 : 0x1p60;
  const std::array<double, 12> values{
      0.0, -0.0, inf, -inf, std::numeric_limits<double>::quiet_NaN(), least, -least, largest, -largest, 1.0, -1.0, 0.5};
  return values[random() % values.size()];
}

int64_t draw_integer(std::mt19937_64& random, DType dtype, Draw draw) {
  if (dtype == DType::b8) return static_cast<int64_t>(random() % 2);
  if (draw.domain == Domain::small_shift && draw.operand == 1) return static_cast<int64_t>(random() % 8);
  if (!draw.special || random() % 2 == 0) return static_cast<int64_t>(random() % 200) - (dtype == DType::u8 ? 0 : 100);
  return static_cast<int64_t>(random());  // stored modulo 2^bits: extremes of small types come up often
}

}  // namespace

void fill(Buffer& buffer, std::mt19937_64& random, Draw draw) {
  const bool real = ir::is_float(buffer.dtype());
  for (int64_t e = 0; e < buffer.size(); ++e) {
    if (!real) {
      buffer.set(e, draw_integer(random, buffer.dtype(), draw));
    } else if (draw.special && random() % 8 == 0) {
      buffer.set(e, special_real(random, buffer.dtype()));
    } else {
      buffer.set(e, draw_real(random, draw.domain));
    }
  }
}

}  // namespace sinter::test
