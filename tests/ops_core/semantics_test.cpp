#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops_core/evaluate.h"

/// What ATen's ops do at the edges, as the decompositions say it.
namespace sinter::ir::test {

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double call(std::string_view name, const std::vector<Operand>& args) { return number(evaluate(name, args)); }

}  // namespace

TEST(Semantics, extremes_let_nan_through_except_fmax_and_fmin) {
  EXPECT_TRUE(std::isnan(call("maximum", {f32(nan), f32(1)})));
  EXPECT_TRUE(std::isnan(call("minimum", {f32(1), f32(nan)})));
  EXPECT_TRUE(std::isnan(call("relu", {f32(nan)})));
  EXPECT_TRUE(std::isnan(call("clamp", {f32(nan), 0.0, 1.0})));
  EXPECT_TRUE(std::isnan(call("hardtanh", {f32(nan), -1.0, 1.0})));
  EXPECT_EQ(call("fmax", {f32(nan), f32(1)}), 1);
  EXPECT_EQ(call("fmin", {f32(1), f32(nan)}), 1);
}

TEST(Semantics, clamp_of_integers_by_floats_is_a_float) {
  EXPECT_EQ(call("clamp", {i32(3), None{}, 2.5}), 2.5);
  EXPECT_EQ(call("clamp", {i32(3), int64_t{4}, int64_t{8}}), 4);
  EXPECT_EQ(call("clamp", {f32(5), 4.0, 2.0}), 2);  // The upper bound wins.
}

TEST(Semantics, remainder_has_the_sign_of_the_divisor_and_fmod_that_of_the_dividend) {
  EXPECT_EQ(call("remainder", {f32(-7), f32(3)}), 2);
  EXPECT_EQ(call("remainder", {f32(7), f32(-3)}), -2);
  EXPECT_EQ(call("aten_fmod", {f32(-7), f32(3)}), -1);
  EXPECT_EQ(call("remainder", {i32(-7), i32(3)}), 2);
  EXPECT_EQ(call("remainder", {i32(7), i32(-3)}), -2);
  EXPECT_EQ(call("aten_fmod", {i32(-7), i32(3)}), -1);
  EXPECT_TRUE(std::isnan(call("remainder", {f32(1), f32(0)})));
}

TEST(Semantics, division_rounds_down_or_towards_zero) {
  const std::string floor = "floor";
  const std::string trunc = "trunc";
  EXPECT_EQ(call("div_rounded", {i32(-7), i32(2), floor}), -4);
  EXPECT_EQ(call("div_rounded", {i32(-7), i32(2), trunc}), -3);
  EXPECT_EQ(call("div_rounded", {f32(-7), f32(2), floor}), -4);
  EXPECT_EQ(call("div_rounded", {f32(-7), f32(2), trunc}), -3);
  EXPECT_EQ(call("floor_divide", {i32(7), i32(-2)}), -4);
  EXPECT_EQ(call("floor_divide", {u8(200), u8(3)}), 66);
  EXPECT_EQ(call("floor_divide", {f32(1), f32(0.1)}), 9);
  EXPECT_EQ(call("floor_divide", {f32(1), f32(0)}), inf);
  EXPECT_EQ(call("div", {i32(7), i32(2)}), 3.5);
}

TEST(Semantics, shifts_beyond_the_width_give_zero_or_the_sign) {
  EXPECT_EQ(call("left_shift", {i32(1), i32(31)}), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(call("left_shift", {i32(1), i32(32)}), 0);
  EXPECT_EQ(call("left_shift", {i32(1), i32(-1)}), 0);
  EXPECT_EQ(call("right_shift", {i32(-8), i32(1)}), -4);
  EXPECT_EQ(call("right_shift", {i32(-8), i32(40)}), -1);
  EXPECT_EQ(call("right_shift", {i32(-8), i32(-1)}), -1);
  EXPECT_EQ(call("right_shift", {u8(200), u8(3)}), 25);
  EXPECT_EQ(call("right_shift", {u8(200), u8(8)}), 0);
}

TEST(Semantics, rounding_takes_halves_to_even_and_counts_decimals) {
  EXPECT_EQ(call("aten_round", {f32(2.5)}), 2);
  EXPECT_EQ(call("aten_round", {f32(3.5)}), 4);
  EXPECT_TRUE(std::signbit(call("aten_round", {f32(-0.5)})));
  EXPECT_FLOAT_EQ(static_cast<float>(call("aten_round", {f32(1.2345), int64_t{2}})), 1.23F);
  EXPECT_EQ(call("aten_round", {f32(1250), int64_t{-2}}), 1200);
  EXPECT_EQ(call("aten_round", {i32(5)}), 5);
  EXPECT_EQ(call("aten_floor", {i32(5)}), 5);
}

TEST(Semantics, powers_of_integers_and_of_known_exponents) {
  EXPECT_EQ(call("aten_pow", {i32(-3), int64_t{3}}), -27);
  EXPECT_EQ(call("aten_pow", {i32(5), int64_t{0}}), 1);
  EXPECT_EQ(call("aten_pow", {i32(2), int64_t{8}}), 256);
  EXPECT_FALSE(evaluate("aten_pow", {i32(2), i32(3)}));
  EXPECT_EQ(call("aten_pow", {f32(9), 0.5}), 3);
  EXPECT_EQ(call("aten_pow", {f32(2), int64_t{-2}}), 0.25);
  EXPECT_EQ(call("aten_pow", {f32(nan), 0.0}), 1);
  EXPECT_EQ(call("aten_pow", {2.0, f32(3)}), 8);
}

TEST(Semantics, signs_and_special_values) {
  EXPECT_EQ(call("sign", {f32(-3)}), -1);
  EXPECT_EQ(call("sign", {f32(nan)}), 0);
  EXPECT_EQ(call("sign", {u8(9)}), 1);
  EXPECT_EQ(call("sign", {b8(true)}), 1);
  EXPECT_EQ(call("signbit", {f32(-0.0)}), 1);
  EXPECT_EQ(call("signbit", {i32(-2)}), 1);
  EXPECT_EQ(call("isnan", {f32(nan)}), 1);
  EXPECT_EQ(call("isinf", {f32(-inf)}), 1);
  EXPECT_EQ(call("isfinite", {f32(nan)}), 0);
  EXPECT_EQ(call("isfinite", {i32(3)}), 1);
  EXPECT_EQ(call("isposinf", {f32(-inf)}), 0);
  EXPECT_EQ(call("heaviside", {f32(0), f32(0.25)}), 0.25);
  EXPECT_EQ(call("heaviside", {f32(nan), f32(0.25)}), 0);
}

TEST(Semantics, logic_takes_anything_but_zero_as_true) {
  EXPECT_EQ(call("logical_and", {f32(nan), i32(2)}), 1);
  EXPECT_EQ(call("logical_and", {f32(0.5), b8(false)}), 0);
  EXPECT_EQ(call("logical_or", {f32(-0.0), i32(0)}), 0);
  EXPECT_EQ(call("logical_xor", {i32(3), i32(4)}), 0);
  EXPECT_EQ(call("logical_not", {f32(0.5)}), 0);
  EXPECT_EQ(call("where", {u8(2), f32(1), f32(0)}), 1);
  EXPECT_EQ(call("masked_fill", {i32(7), b8(true), 2.5}), 2);
}

TEST(Semantics, logarithms_at_the_edges) {
  EXPECT_EQ(call("xlogy", {f32(0), f32(0)}), 0);
  EXPECT_TRUE(std::isnan(call("xlogy", {f32(0), f32(nan)})));
  EXPECT_EQ(call("logaddexp", {f32(-inf), f32(-inf)}), -inf);
  EXPECT_EQ(call("logaddexp", {f32(inf), f32(inf)}), inf);
  EXPECT_FLOAT_EQ(static_cast<float>(call("logaddexp", {f32(1), f32(1)})), 1 + std::log(2.0F));
  EXPECT_FLOAT_EQ(static_cast<float>(call("logaddexp2", {f32(3), f32(3)})), 4.0F);
  EXPECT_EQ(call("logit", {f32(0.5), None{}}), 0);
  EXPECT_FLOAT_EQ(static_cast<float>(call("logit", {f32(2), 0.25})), std::log(3.0F));
  EXPECT_EQ(call("sinc", {f32(0)}), 1);
}

TEST(Semantics, erfinv_inverts_erf) {
  for (const double x : {-2.5, -1.0, -0.1, 0.0, 0.3, 0.7, 1.5, 2.0}) {
    EXPECT_NEAR(call("erfinv", {f64(std::erf(x))}), x, 1e-10);
  }
  EXPECT_EQ(call("erfinv", {f32(1)}), inf);
  EXPECT_EQ(call("erfinv", {f32(-1)}), -inf);
  EXPECT_TRUE(std::isnan(call("erfinv", {f32(1.5)})));
}

TEST(Semantics, activations) {
  EXPECT_FLOAT_EQ(static_cast<float>(call("gelu", {f32(1), std::string("none")})), 0.8413447F);
  EXPECT_FLOAT_EQ(static_cast<float>(call("gelu", {f32(1), std::string("tanh")})), 0.841192F);
  EXPECT_FLOAT_EQ(static_cast<float>(call("sigmoid", {i32(0)})), 0.5F);
  EXPECT_EQ(call("sigmoid", {f32(-inf)}), 0);
  EXPECT_EQ(call("leaky_relu", {f32(-2), 0.5}), -1);
  EXPECT_FLOAT_EQ(static_cast<float>(call("elu", {f32(-1), 2.0, 3.0, 1.0})), 6 * std::expm1(-1.0F));
  EXPECT_EQ(call("softplus", {f32(30), 1.0, 20.0}), 30);
  EXPECT_EQ(call("hardswish", {f32(3)}), 3);
  EXPECT_EQ(call("hardsigmoid", {f32(-4)}), 0);
  EXPECT_EQ(call("softshrink", {f32(-2), 0.5}), -1.5);
  EXPECT_EQ(call("hardshrink", {f32(0.25), 0.5}), 0);
  EXPECT_EQ(call("threshold", {f32(1), 2.0, 9.0}), 9);
  EXPECT_EQ(call("lerp", {f32(1), f32(3), 0.25}), 1.5);
  EXPECT_EQ(call("addcmul", {f32(1), f32(2), f32(3), 0.5}), 4);
}

}  // namespace sinter::ir::test
