#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "compiler/ir/reference.h"
#include "tests/ops_core/evaluate.h"

namespace sinter::ir::test {

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Values of a row's domain for one operand.
std::vector<double> draw(Domain domain, size_t count) {
  std::mt19937 generator(17);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    const double value = uniform(generator);
    switch (domain) {
      case Domain::positive:
        values.push_back(8 * std::abs(value) + 1e-3);
        break;
      case Domain::unit_interval:
        values.push_back(std::abs(value));
        break;
      case Domain::symmetric_unit:
        values.push_back(value);
        break;
      case Domain::at_least_one:
        values.push_back(1 + 8 * std::abs(value));
        break;
      case Domain::nonzero_second:
        values.push_back(8 * value + (value < 0 ? -1e-3 : 1e-3));
        break;
      case Domain::all_reals:
      case Domain::small_shift:
        values.push_back(8 * value);
        break;
    }
  }
  return values;
}

void expect_same(double actual, double expected, std::string_view what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what;
  } else {
    EXPECT_EQ(actual, expected) << what;
    EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << what;
  }
}

struct Unary {
  std::string_view name;
  double (*function)(double);
};
struct Binary {
  std::string_view name;
  double (*function)(double, double);
};

constexpr std::array unary_functions = std::to_array<Unary>({
    {"exp", std::exp},     {"exp2", std::exp2},   {"expm1", std::expm1},   {"log", std::log},     {"log2", std::log2},
    {"log10", std::log10}, {"log1p", std::log1p}, {"sin", std::sin},       {"cos", std::cos},     {"tan", std::tan},
    {"asin", std::asin},   {"acos", std::acos},   {"atan", std::atan},     {"sinh", std::sinh},   {"cosh", std::cosh},
    {"tanh", std::tanh},   {"asinh", std::asinh}, {"acosh", std::acosh},   {"atanh", std::atanh}, {"erf", std::erf},
    {"erfc", std::erfc},   {"sqrt", std::sqrt},   {"floor", std::floor},   {"ceil", std::ceil},   {"trunc", std::trunc},
    {"abs", std::fabs},    {"round", std::rint},  {"lgamma", std::lgamma},
});
constexpr std::array binary_functions = std::to_array<Binary>({
    {"pow", std::pow},
    {"fmod", std::fmod},
    {"atan2", std::atan2},
    {"hypot", std::hypot},
    {"fmax", std::fmax},
    {"fmin", std::fmin},
    {"copysign", std::copysign},
    {"nextafter", std::nextafter},
});

}  // namespace

TEST(References, functions_of_one_operand_equal_those_of_the_library) {
  for (const Unary& entry : unary_functions) {
    auto values = draw(row(op_named(entry.name)).domain, 50);
    values.insert(values.end(), {0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -1.5, inf, -inf, nan, 5e-324, 1e300});
    for (const double value : values) {
      expect_same(number(evaluate(entry.name, {f64(value)})), entry.function(value), entry.name);
    }
  }
}

TEST(References, functions_of_two_operands_equal_those_of_the_library) {
  for (const Binary& entry : binary_functions) {
    const auto values = draw(row(op_named(entry.name)).domain, 20);
    for (const double left : values) {
      for (const double right : values) {
        expect_same(number(evaluate(entry.name, {f64(left), f64(right)})), entry.function(left, right), entry.name);
      }
    }
  }
}

TEST(References, the_inverse_root_is_one_divided_by_the_root) {
  for (const double value : {4.0, 0.25, 2.0, 0.0, -0.0, -1.0, inf, nan})
    expect_same(number(evaluate("rsqrt", {f64(value)})), 1 / std::sqrt(value), "rsqrt");
}

TEST(References, arithmetic_and_comparisons_of_floats) {
  for (const double left : {1.5, -2.0, 0.0, inf, nan}) {
    for (const double right : {1.5, 3.0, -0.0, -inf, nan}) {
      expect_same(number(evaluate("add", {f64(left), f64(right)})), left + right, "add");
      expect_same(number(evaluate("sub", {f64(left), f64(right)})), left - right, "sub");
      expect_same(number(evaluate("mul", {f64(left), f64(right)})), left * right, "mul");
      expect_same(number(evaluate("div", {f64(left), f64(right)})), left / right, "div");
      EXPECT_EQ(number(evaluate("eq", {f64(left), f64(right)})), left == right);
      EXPECT_EQ(number(evaluate("ne", {f64(left), f64(right)})), left != right);
      EXPECT_EQ(number(evaluate("lt", {f64(left), f64(right)})), left < right);
      EXPECT_EQ(number(evaluate("le", {f64(left), f64(right)})), left <= right);
      EXPECT_EQ(number(evaluate("gt", {f64(left), f64(right)})), left > right);
      EXPECT_EQ(number(evaluate("ge", {f64(left), f64(right)})), left >= right);
    }
  }
}

TEST(References, integers_wrap_to_their_dtype) {
  constexpr int64_t least = std::numeric_limits<int32_t>::min();
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(number(evaluate("add", {i32(most), i32(1)})), least);
  EXPECT_EQ(number(evaluate("sub", {i32(least), i32(1)})), most);
  EXPECT_EQ(number(evaluate("mul", {i32(1 << 20), i32(1 << 12)})), 0);
  EXPECT_EQ(number(evaluate("neg", {i32(least)})), least);
  EXPECT_EQ(number(evaluate("abs", {i32(least)})), least);
  EXPECT_EQ(number(evaluate("add", {u8(250), u8(10)})), 4);
  EXPECT_EQ(number(evaluate("neg", {u8(1)})), 255);
  EXPECT_EQ(number(evaluate("bitwise_not", {u8(1)})), 254);
  EXPECT_EQ(number(evaluate("bitwise_not", {i32(0)})), -1);
}

TEST(References, bools_add_as_or_and_multiply_as_and) {
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      EXPECT_EQ(number(evaluate("add", {b8(left), b8(right)})), left || right);
      EXPECT_EQ(number(evaluate("mul", {b8(left), b8(right)})), left && right);
      EXPECT_EQ(number(evaluate("maximum", {b8(left), b8(right)})), left || right);
      EXPECT_EQ(number(evaluate("bitwise_xor", {b8(left), b8(right)})), left != right);
      EXPECT_EQ(number(evaluate("lt", {b8(left), b8(right)})), !left && right);
    }
    EXPECT_EQ(number(evaluate("bitwise_not", {b8(left)})), !left);
  }
}

TEST(References, division_of_integers_is_total) {
  constexpr int64_t least = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(number(evaluate("quotient", {i32(7), i32(0)})), -1);
  EXPECT_EQ(number(evaluate("modulo", {i32(7), i32(0)})), 7);
  EXPECT_EQ(number(evaluate("quotient", {i32(least), i32(-1)})), least);
  EXPECT_EQ(number(evaluate("modulo", {i32(least), i32(-1)})), 0);
  EXPECT_EQ(number(evaluate("quotient", {i32(-7), i32(2)})), -3);
  EXPECT_EQ(number(evaluate("modulo", {i32(-7), i32(2)})), -1);
}

TEST(References, casts_round_and_truncate_as_aten_does) {
  const auto cast = [](RefValue value, DType to) { return ref::cast(std::array{value}, to); };
  EXPECT_EQ(std::get<double>(cast(2049.0, DType::f16)), 2048.0);
  EXPECT_EQ(std::get<double>(cast(2051.0, DType::f16)), 2052.0);
  EXPECT_EQ(std::get<double>(cast(65519.0, DType::f16)), 65504.0);
  EXPECT_EQ(std::get<double>(cast(65520.0, DType::f16)), inf);
  EXPECT_EQ(std::get<double>(cast(0x1p-25, DType::f16)), 0.0);
  EXPECT_EQ(std::get<double>(cast(0x1.8p-25, DType::f16)), 0x1p-24);
  EXPECT_EQ(std::get<double>(cast(257.0, DType::bf16)), 256.0);
  EXPECT_EQ(std::get<double>(cast(0.1, DType::f32)), 0.1F);
  EXPECT_EQ(std::get<double>(cast(int64_t{16777217}, DType::f32)), 16777216.0);
  EXPECT_EQ(std::get<int64_t>(cast(-1.9, DType::i32)), -1);
  EXPECT_EQ(std::get<int64_t>(cast(-1.0, DType::u8)), 255);
  EXPECT_EQ(std::get<int64_t>(cast(nan, DType::b8)), 1);
  EXPECT_EQ(std::get<int64_t>(cast(-0.0, DType::b8)), 0);
  EXPECT_EQ(std::get<int64_t>(cast(int64_t{300}, DType::u8)), 44);
}

TEST(References, nextafter_steps_in_the_dtype) {
  EXPECT_EQ(number(evaluate("aten_nextafter", {f32(1), f32(2)})), std::nextafter(1.0F, 2.0F));
  EXPECT_EQ(number(evaluate("aten_nextafter", {f64(1), f64(2)})), std::nextafter(1.0, 2.0));
}

}  // namespace sinter::ir::test
