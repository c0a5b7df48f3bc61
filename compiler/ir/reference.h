#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <variant>

#include "compiler/ir/op.h"

/// Reference functions of the native rows: one element, floats in double, integers in int64_t wrapped to the dtype.
/// They say what an op means; back ends are tested against them.
namespace sinter::ir::ref {

using Args = std::span<const RefValue>;

/// An integer as the dtype holds it: two's complement, modulo 2^bits; b8 is 0 or 1. Not for floats.
[[nodiscard]] int64_t wrap(int64_t value, DType dtype);
/// Truncates towards zero; out of range saturates to int64_t, NaN is 0; then wraps. b8: whether it is not zero.
[[nodiscard]] int64_t to_integer(double value, DType dtype);
[[nodiscard]] double real(const RefValue& value);
[[nodiscard]] int64_t integer(const RefValue& value);
/// The value as `dtype` holds it, except that f32 and half values keep double's precision.
[[nodiscard]] RefValue convert(const RefValue& value, DType dtype);
/// Rounds to the nearest value of a float dtype, ties to even. Halves from f64 go through f32, as in ATen.
[[nodiscard]] double round_to(double value, DType dtype);

/// The largest finite number of a float dtype.
[[nodiscard]] double highest_of(DType dtype);

/// Float ops of one and two operands.
template <double (*F)(double)>
RefValue floats(Args a, DType) {
  return F(real(a[0]));
}
template <double (*F)(double, double)>
RefValue floats(Args a, DType) {
  return F(real(a[0]), real(a[1]));
}

/// Integer ops of one and two operands; the result wraps.
template <int64_t (*F)(int64_t)>
RefValue ints(Args a, DType dtype) {
  return wrap(F(integer(a[0])), dtype);
}
template <int64_t (*F)(int64_t, int64_t)>
RefValue ints(Args a, DType dtype) {
  return wrap(F(integer(a[0]), integer(a[1])), dtype);
}

/// Ops with a form for floats and one for integers.
template <double (*F)(double), int64_t (*G)(int64_t)>
RefValue numbers(Args a, DType dtype) {
  return is_float(dtype) ? floats<F>(a, dtype) : ints<G>(a, dtype);
}
template <double (*F)(double, double), int64_t (*G)(int64_t, int64_t)>
RefValue numbers(Args a, DType dtype) {
  return is_float(dtype) ? floats<F>(a, dtype) : ints<G>(a, dtype);
}

/// A comparison, std::less<>{} or the like: 0 or 1.
template <auto F>
RefValue compare(Args a, DType dtype) {
  return static_cast<int64_t>(is_float(dtype) ? F(real(a[0]), real(a[1])) : F(integer(a[0]), integer(a[1])));
}

// Floats as IEEE says, integers in two's complement without undefined overflow.
[[nodiscard]] constexpr double add(double a, double b) { return a + b; }
[[nodiscard]] constexpr double sub(double a, double b) { return a - b; }
[[nodiscard]] constexpr double mul(double a, double b) { return a * b; }
[[nodiscard]] constexpr double div(double a, double b) { return a / b; }
[[nodiscard]] inline double rsqrt(double a) { return 1 / std::sqrt(a); }
[[nodiscard]] constexpr double neg(double a) { return -a; }
[[nodiscard]] constexpr int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
[[nodiscard]] constexpr int64_t sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
[[nodiscard]] constexpr int64_t mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
[[nodiscard]] constexpr int64_t neg(int64_t a) { return sub(0, a); }
[[nodiscard]] constexpr int64_t abs(int64_t a) { return a < 0 ? neg(a) : a; }
[[nodiscard]] constexpr int64_t bit_and(int64_t a, int64_t b) { return a & b; }
[[nodiscard]] constexpr int64_t bit_or(int64_t a, int64_t b) { return a | b; }
[[nodiscard]] constexpr int64_t bit_xor(int64_t a, int64_t b) { return a ^ b; }

/// Truncating quotient. By zero: -1. The least integer by -1: itself.
[[nodiscard]] constexpr int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) return -1;
  return b == -1 ? neg(a) : a / b;
}
/// a - quotient * b, of the dividend's sign. By zero: a.
[[nodiscard]] constexpr int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) return a;
  return b == -1 ? 0 : a % b;
}
/// Shifts by an amount in [0, 64); others give 0, and the sign where it is shifted in.
[[nodiscard]] constexpr int64_t shift_left(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
[[nodiscard]] constexpr int64_t shift_right(int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

/// NaN when either is NaN.
[[nodiscard]] double maximum(double a, double b);
[[nodiscard]] double minimum(double a, double b);
[[nodiscard]] constexpr int64_t maximum(int64_t a, int64_t b) { return a > b ? a : b; }
[[nodiscard]] constexpr int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }
/// Rounds halves to even, whatever the rounding mode.
[[nodiscard]] double round_even(double value);

RefValue cast(Args a, DType dtype);
RefValue where(Args a, DType dtype);
RefValue bitwise_not(Args a, DType dtype);
/// a[0] * a[1] + a[2], rounded once to f32 or f64.
RefValue fma(Args a, DType dtype);
/// The next value of the dtype itself.
RefValue nextafter(Args a, DType dtype);

}  // namespace sinter::ir::ref
