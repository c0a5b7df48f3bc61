#include "compiler/ir/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "compiler/support/errors.h"

namespace sinter::ir::ref {

int64_t wrap(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::i64:
      return value;
    case DType::i32:
      return static_cast<int32_t>(value);
    case DType::i16:
      return static_cast<int16_t>(value);
    case DType::i8:
      return static_cast<int8_t>(value);
    case DType::u8:
      return static_cast<uint8_t>(value);
    case DType::b8:
      return static_cast<int64_t>(value != 0);
    default:
      throw InternalError("reference", "an integer op computes in " + std::string(name(dtype)));
  }
}

int64_t to_integer(double value, DType dtype) {
  if (dtype == DType::b8) return static_cast<int64_t>(value != 0);
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return wrap(std::numeric_limits<int64_t>::max(), dtype);
  if (value < -0x1p63) return wrap(std::numeric_limits<int64_t>::min(), dtype);
  return wrap(static_cast<int64_t>(value), dtype);
}

double real(const RefValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return static_cast<double>(std::get<int64_t>(value));
}

int64_t integer(const RefValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  throw InternalError("reference", "an integer op got a float");
}

RefValue convert(const RefValue& value, DType dtype) {
  if (is_float(dtype)) return real(value);
  if (const auto* number = std::get_if<double>(&value)) return to_integer(*number, dtype);
  return wrap(std::get<int64_t>(value), dtype);
}

namespace {

/// An f32 rounded to a float with `bits` explicit significand bits and least normal exponent `least`.
double round_bits(float value, int bits, int least) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), least);
  return std::ldexp(round_even(std::ldexp(value, bits - exponent)), exponent - bits);
}

}  // namespace

double highest_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::f16:
      return 65504.0;
    case DType::bf16:
      return 0x1.fep127;
    default:
      return std::numeric_limits<float>::max();
  }
}

double round_to(double value, DType dtype) {
  if (dtype == DType::f64) return value;
  const auto single = static_cast<float>(value);
  if (dtype == DType::f32) return single;
  const double rounded = dtype == DType::f16 ? round_bits(single, 10, -14) : round_bits(single, 7, -126);
  return std::abs(rounded) > highest_of(dtype) ? std::copysign(std::numeric_limits<double>::infinity(), rounded)
                                               : rounded;
}

RefValue cast(Args a, DType dtype) {
  const RefValue value = convert(a[0], dtype);
  return is_float(dtype) ? RefValue(round_to(std::get<double>(value), dtype)) : value;
}

RefValue where(Args a, DType) { return integer(a[0]) != 0 ? a[1] : a[2]; }

RefValue bitwise_not(Args a, DType dtype) {
  return dtype == DType::b8 ? static_cast<int64_t>(integer(a[0]) == 0) : wrap(~integer(a[0]), dtype);
}

RefValue fma(Args a, DType dtype) {
  if (dtype == DType::f64) return std::fma(real(a[0]), real(a[1]), real(a[2]));
  const auto single = [&](size_t i) { return static_cast<float>(real(a[i])); };
  return static_cast<double>(std::fma(single(0), single(1), single(2)));
}

RefValue nextafter(Args a, DType dtype) {
  if (dtype == DType::f64) return std::nextafter(real(a[0]), real(a[1]));
  return static_cast<double>(std::nextafter(static_cast<float>(real(a[0])), static_cast<float>(real(a[1]))));
}

double maximum(double a, double b) {
  if (std::isnan(a)) return a;
  return std::isnan(b) || b > a ? b : a;
}

double minimum(double a, double b) {
  if (std::isnan(a)) return a;
  return std::isnan(b) || b < a ? b : a;
}

double round_even(double value) {
  const double floor = std::floor(value);
  const double rest = value - floor;
  const bool up = rest > 0.5 || (rest == 0.5 && std::fmod(floor, 2.0) != 0);
  return std::copysign(up ? floor + 1 : floor, value);
}

}  // namespace sinter::ir::ref
