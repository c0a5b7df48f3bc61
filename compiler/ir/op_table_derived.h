#pragma once

#include "compiler/ir/op_table.h"

/// The ops that the decompose pass rewrites into native ones. Columns: name, ATen names, arity, type rule, expression
/// (grammar in expression.h), test domain. The first alternative whose guards hold is taken; where none does, the ATen
/// call stays a call.
namespace sinter::ir::table {

// clang-format off
inline constexpr auto derived_rows = std::to_array<OpRow>({
    // Arithmetic. `fma` where ATen's own kernel rounds a product and a sum together.
    with_wide_numbers(on_cuda, with_rounded_attributes(derived("aten_add", {"aten::add"}, 2, same,
                                    "{2}=1: {0} + {1}; floating: fma({1}, {2}, {0}); {0} + {1} * {2}", all_reals))),
    with_wide_numbers(on_cuda, with_rounded_attributes(derived("aten_sub", {"aten::sub"}, 2, same,
                                    "{2}=1: {0} - {1}; floating: fma({1}, -{2}, {0}); {0} - {1} * {2}", all_reals))),
    with_wide_numbers(on_cuda, with_rounded_attributes(derived("rsub", {"aten::rsub"}, 2, same,
                                    "{2}=1: {1} - {0}; floating: fma({0}, -{2}, {1}); {1} - {0} * {2}", all_reals))),
    derived("aten_abs", {"aten::abs"}, 1, same, "boolean: {0}; unsigned: {0}; abs({0})", all_reals),
    derived("square", {"aten::square"}, 1, same, "boolean: refuse; {0} * {0}", all_reals),
    derived("reciprocal", {"aten::reciprocal"}, 1, float_like, "1 / {0}", positive),
    derived("aten_rsqrt", {"aten::rsqrt"}, 1, float_like, "rsqrt({0})", positive),
    derived("addcmul", {"aten::addcmul"}, 3, same,
            "boolean: refuse; integer: {0} + {3} * {1} * {2}; cuda, {3}=1: fma({1}, {2}, {0});"
            "cuda: fma({3}, {1} * {2}, {0}); fma({3} * {1}, {2}, {0})", all_reals),
    derived("addcdiv", {"aten::addcdiv"}, 3, floating,
            "cuda, {3}=1: {0} + {1} / {2}; cuda: fma({3}, {1} / {2}, {0}); {0} + {3} * {1} / {2}", positive),
    with_wide_numbers(everywhere, derived("lerp", {"aten::lerp"}, 3, floating,
                              "cuda: where(abs({2}) < 0.5, fma({2}, {1} - {0}, {0}), fma(-({1} - {0}), 1 - {2}, {1}));"
                              "where(abs({2}) < 0.5, fma({2}, {1} - {0}, {0}), fma({2} - 1, {1} - {0}, {1}))",
                              all_reals)),
    derived("deg2rad", {"aten::deg2rad"}, 1, float_like, "{0} * 0.017453292519943295", all_reals),
    derived("rad2deg", {"aten::rad2deg"}, 1, float_like, "{0} * 57.29577951308232", all_reals),

    // Division and remainder. Integers: x / 0 is -1 and x % 0 is x, the least integer / -1 is itself. ATen rounds the
    // quotient of halves before it truncates, which computing in f32 would miss.
    derived("int_quotient", {}, 2, same,
            "unsigned: where({1} == 0, -1, quotient({0}, where({1} == 0, 1, {1})));"
            "where({1} == 0, -1, where({1} == -1, -{0}, quotient({0}, where(({1} == 0) | ({1} == -1), 1, {1}))))",
            nonzero_second),
    derived("int_modulo", {}, 2, same,
            "unsigned: where({1} == 0, {0}, modulo({0}, where({1} == 0, 1, {1})));"
            "where({1} == 0, {0}, where({1} == -1, 0, modulo({0}, where(({1} == 0) | ({1} == -1), 1, {1}))))",
            nonzero_second),
    derived("wrong_side", {}, 2, compare, "({0} != 0) & (({0} < 0) != ({1} < 0))", nonzero_second),
    derived("div_trunc", {}, 2, same, "half: refuse; floating: trunc({0} / {1}); int_quotient({0}, {1})",
            nonzero_second),
    // {2} is the remainder, which SLEEF's fmod does not give where the quotient overflows.
    derived("multiple_below", {}, 3, floating,
            "cuda: {0} - {2}; where((abs({0} / {1}) == inf) & (abs({0}) != inf), {0}, {0} - {2})", nonzero_second),
    derived("floor_exact", {}, 3, floating,
            "multiple_below({0}, {1}, {2}) / {1} - where(wrong_side({2}, {1}), 1, 0)", nonzero_second),
    derived("floor_snap", {}, 3, floating,
            "where({2} != 0, floor({2}) + where({2} - floor({2}) > 0.5, 1, 0), copysign(0, {0} / {1}))",
            nonzero_second),
    with_wide_numbers(everywhere, derived("floor_divide", {"aten::floor_divide"}, 2, same,
            "floating: where({1} == 0, {0} / {1}, floor_snap({0}, {1}, floor_exact({0}, {1}, fmod({0}, {1}))));"
            "unsigned: int_quotient({0}, {1});"
            "int_quotient({0}, {1}) - where(wrong_side(int_modulo({0}, {1}), {1}), 1, 0)", nonzero_second)),
    with_wide_numbers(everywhere, derived("div_rounded", {"aten::div.Tensor_mode", "aten::div.Scalar_mode"}, 2, same,
            "boolean: refuse; {2}='trunc': div_trunc({0}, {1}); {2}='floor': floor_divide({0}, {1});"
            "floating, {2}=none: {0} / {1}", nonzero_second)),
    derived("aten_fmod", {"aten::fmod"}, 2, same, "floating: fmod({0}, {1}); int_modulo({0}, {1})", nonzero_second),
    derived("python_modulo", {}, 2, same, "where(wrong_side({0}, {1}), {0} + {1}, {0})", nonzero_second),
    derived("remainder", {"aten::remainder"}, 2, same, "python_modulo(aten_fmod({0}, {1}), {1})", nonzero_second),

    // Extremes. NaN of any operand passes through. ATen keeps a zero that equals its bound, with its sign, on the CPU.
    derived("at_least", {}, 2, same,
            "cpu, floating: where({1} != {1}, {1}, where({0} < {1}, {1}, {0})); maximum({0}, {1})", all_reals),
    derived("at_most", {}, 2, same,
            "cpu, floating: where({1} != {1}, {1}, where({0} > {1}, {1}, {0})); minimum({0}, {1})", all_reals),
    derived("clamp", {"aten::clamp"}, 3, same,
            "boolean: refuse; {1}=none: at_most({0}, {2}); {2}=none: at_least({0}, {1});"
            "at_most(at_least({0}, {1}), {2})", all_reals),
    derived("clamp_min", {"aten::clamp_min"}, 2, same, "at_least({0}, {1})", all_reals),
    derived("clamp_max", {"aten::clamp_max"}, 2, same, "at_most({0}, {1})", all_reals),

    // Signs and special values.
    derived("sign", {"aten::sign", "aten::sgn"}, 1, same,
            "boolean: {0}; where({0} > 0, 1, where({0} < 0, -1, 0))", all_reals),
    derived("signbit", {"aten::signbit"}, 1, predicate, "floating: copysign(1, {0}) < 0; {0} < 0", all_reals),
    derived("heaviside", {"aten::heaviside"}, 2, same, "where({0} == 0, {1}, where({0} > 0, 1, 0))", all_reals),
    derived("isnan", {"aten::isnan"}, 1, predicate, "{0} != {0}", all_reals),
    derived("isinf", {"aten::isinf"}, 1, predicate, "floating: abs({0}) == inf; {0} != {0}", all_reals),
    derived("isfinite", {"aten::isfinite"}, 1, predicate, "floating: abs({0}) < inf; {0} == {0}", all_reals),
    derived("isposinf", {"aten::isposinf"}, 1, predicate, "floating: {0} == inf; {0} != {0}", all_reals),
    derived("isneginf", {"aten::isneginf"}, 1, predicate, "floating: {0} == -inf; {0} != {0}", all_reals),
    derived("value_or", {}, 1, same, "{0}=none: {1}; {0}", all_reals),
    derived("nan_to_num", {"aten::nan_to_num"}, 1, same,
            "floating: where({0} != {0}, value_or({1}, 0), where({0} == inf, value_or({2}, highest),"
            "  where({0} == -inf, value_or({3}, lowest), {0}))); {0}", all_reals),
    derived("aten_nextafter", {"aten::nextafter"}, 2, floating, "half: refuse; nextafter({0}, {1})", all_reals),
    derived("masked_fill", {"aten::masked_fill"}, 1, same, "where({1}, {2}, {0})", all_reals),

    // Logic and bits.
    derived("logical_and", {"aten::logical_and"}, 2, compare, "{0} & {1}", all_reals),
    derived("logical_or", {"aten::logical_or"}, 2, compare, "{0} | {1}", all_reals),
    derived("logical_xor", {"aten::logical_xor"}, 2, compare, "({0} != 0) != ({1} != 0)", all_reals),
    derived("logical_not", {"aten::logical_not"}, 1, predicate, "{0} == 0", all_reals),
    derived("in_width", {}, 1, predicate, "unsigned: {0} < bits; ({0} >= 0) & ({0} < bits)", small_shift),
    derived("left_shift", {"aten::bitwise_left_shift", "aten::__lshift__", "aten::__ilshift__"}, 2, integral,
            "where(in_width({1}), shift_left({0}, {1}), 0)", small_shift),
    derived("right_shift", {"aten::bitwise_right_shift", "aten::__rshift__", "aten::__irshift__"}, 2, integral,
            "unsigned: where(in_width({1}), shift_right({0}, {1}), 0);"
            "shift_right({0}, where(in_width({1}), {1}, bits - 1))", small_shift),

    // Rounding.
    derived("aten_floor", {"aten::floor"}, 1, same, "floating: floor({0}); integer: {0}", all_reals),
    derived("aten_ceil", {"aten::ceil"}, 1, same, "floating: ceil({0}); integer: {0}", all_reals),
    derived("aten_trunc", {"aten::trunc"}, 1, same, "floating: trunc({0}); integer: {0}", all_reals),
    derived("round_scaled", {}, 2, floating, "round({0} * {1}) / {1}", all_reals),
    derived("aten_round", {"aten::round"}, 1, same,
            "integer: {0}; boolean: refuse; {1}=none: round({0});"
            "where({1} < 0, round({0} / pow(10, -{1})) * pow(10, -{1}), round_scaled({0}, pow(10, {1})))", all_reals),
    derived("frac", {"aten::frac"}, 1, floating, "{0} - trunc({0})", all_reals),

    // Powers and logarithms.
    derived("aten_pow", {"aten::pow"}, 2, same,
            "boolean: refuse; {1}=1: {0}; {1}=2: {0} * {0}; cuda, half, {1}=3: rounded({0} * {0}) * {0};"
            "cpu, bf16, {1}=3: rounded({0} * {0}) * {0};"
            "{1}=3: {0} * {0} * {0}; integer: int_pow({0}, {1});"
            "cpu, f16, {1}=0.5: pow({0}, {1}); {1}=0.5: sqrt({0});"
            "cpu, f16, {1}=-0.5: pow({0}, {1}); {1}=-0.5: rsqrt({0});"
            "{1}=-1: 1 / {0}; cuda, half, {1}=-2: 1 / rounded({0} * {0}); cpu, bf16, {1}=-2: 1 / rounded({0} * {0});"
            "{1}=-2: 1 / ({0} * {0});"
            "pow({0}, {1})", positive),
    derived("int_pow", {}, 2, same,
            "{1}=0: where({0} == {0}, 1, 1); {1}=4: square(square({0})); {1}=5: square(square({0})) * {0};"
            "{1}=6: square({0} * {0} * {0}); {1}=7: square({0} * {0} * {0}) * {0}; {1}=8: square(square(square({0})))",
            positive),
    derived("logaddexp", {"aten::logaddexp"}, 2, floating,
            "where(({0} == {1}) & (abs({0}) == inf), {0}, maximum({0}, {1}) + log1p(exp(-abs({0} - {1}))))", all_reals),
    derived("logaddexp2", {"aten::logaddexp2"}, 2, floating,
            "where(({0} == {1}) & (abs({0}) == inf), {0},"
            "  fma(log1p(exp2(-abs({0} - {1}))), 1.4426950408889634, maximum({0}, {1})))", all_reals),
    derived("xlogy", {"aten::xlogy"}, 2, float_like,
            "where({1} != {1}, nan, where({0} == 0, 0, {0} * log({1})))", positive),
    // SLEEF's log1p of a denormal is zero; ATen calls libm.
    derived("near_log1p", {}, 1, floating, "cuda: log1p({0}); where(abs({0}) < 1e-30, {0}, log1p({0}))", positive),
    derived("xlog1py", {"aten::special_xlog1py"}, 2, float_like,
            "where({1} != {1}, nan, where({0} == 0, 0, {0} * near_log1p({1})))", positive),
    derived("entr", {"aten::special_entr"}, 1, float_like,
            "where({0} != {0}, {0}, where({0} > 0, -{0} * log({0}), where({0} == 0, 0, -inf)))", positive),
    derived("log_odds", {}, 1, float_like, "log({0} / (1 - {0}))", unit_interval),
    derived("logit", {"aten::logit"}, 1, float_like,
            "{1}=none: log_odds({0}); cpu, half: refuse;"  // ATen rounds 1 - {1} to the half there
            "log_odds(minimum(maximum({0}, {1}), 1 - {1}))", unit_interval),
    // SLEEF squares the argument, which overflows; ATen calls libm. Far out both are log(2 |x|).
    derived("aten_asinh", {"aten::asinh"}, 1, float_like,
            "cuda: asinh({0});"
            "where(abs({0}) > 1e9, copysign(log(abs({0})) + 0.6931471805599453, {0}), asinh({0}))", all_reals),
    derived("aten_acosh", {"aten::acosh"}, 1, float_like,
            "cuda: acosh({0}); where({0} > 1e9, log({0}) + 0.6931471805599453, acosh({0}))", at_least_one),
    derived("sinc", {"aten::sinc"}, 1, float_like,
            "where({0} == 0, 1, sin(pi * {0}) / (pi * {0}))", all_reals),
    derived("erfinv_middle", {}, 2, floating,
            "{0} * (((-0.140543331 * {1} + 0.914624893) * {1} - 1.645349621) * {1} + 0.886226899) /"
            "((((0.012229801 * {1} - 0.329097515) * {1} + 1.442710462) * {1} - 2.118377725) * {1} + 1)", symmetric_unit),
    derived("erfinv_tail", {}, 2, floating,
            "copysign((((1.641345311 * {1} + 3.429567803) * {1} - 1.624906493) * {1} - 1.970840454), {0}) /"
            "((1.637067800 * {1} + 3.543889200) * {1} + 1)", symmetric_unit),
    derived("erfinv_newton", {}, 2, floating,
            "{1} - (erf({1}) - {0}) / (1.1283791670955126 * exp(-{1} * {1}))", symmetric_unit),
    derived("erfinv", {"aten::erfinv"}, 1, float_like,
            "where(abs({0}) == 1, copysign(inf, {0}), where(abs({0}) > 1, nan,"
            "  erfinv_newton({0}, erfinv_newton({0}, where(abs({0}) <= 0.7, erfinv_middle({0}, {0} * {0}),"
            "  erfinv_tail({0}, sqrt(-log((1 - abs({0})) / 2))))))))", symmetric_unit),

    // Activations.
    derived("relu", {"aten::relu"}, 1, same, "boolean: refuse; at_least({0}, 0)", all_reals),
    derived("sigmoid", {"aten::sigmoid"}, 1, float_like, "1 / (1 + exp(-{0}))", all_reals),
    derived("silu", {"aten::silu"}, 1, floating, "{0} / (1 + exp(-{0}))", all_reals),
    derived("mish", {"aten::mish"}, 1, floating, "{0} * tanh(log1p(exp({0})))", all_reals),
    derived("gelu", {"aten::gelu"}, 1, floating,
            "{1}='tanh': 0.5 * {0} * (1 + tanh(0.7978845608028654 * fma(0.044715, {0} * {0} * {0}, {0})));"
            "{0} * 0.5 * (1 + erf({0} * 0.7071067811865476))", all_reals),
    derived("elu", {"aten::elu"}, 1, floating,
            "where({0} < 0, expm1({0} * {3}) * ({1} * {2}), {0} * {2})", all_reals),
    derived("softplus", {"aten::softplus"}, 1, floating,
            "where({0} * {1} > {2}, {0}, log1p(exp({0} * {1})) / {1})", all_reals),
    derived("hardtanh", {"aten::hardtanh"}, 1, same,
            "boolean: refuse; unsigned: refuse;"  // a bound below zero wraps in LibTorch 2.11 and counts in 2.15
            "at_most(at_least({0}, {1}), {2})", all_reals),
    derived("hardsigmoid", {"aten::hardsigmoid"}, 1, floating, "minimum(maximum({0} + 3, 0), 6) / 6", all_reals),
    derived("hardswish", {"aten::hardswish"}, 1, floating, "{0} * minimum(maximum({0} + 3, 0), 6) / 6", all_reals),
    derived("leaky_relu", {"aten::leaky_relu"}, 1, floating, "where({0} > 0, {0}, {0} * {1})", all_reals),
    derived("prelu", {"aten::_prelu_kernel"}, 2, floating, "where({0} > 0, {0}, {1} * {0})", all_reals),
    derived("hardshrink", {"aten::hardshrink"}, 1, floating,
            "where(({0} >= -{1}) & ({0} <= {1}), 0, {0})", all_reals),
    derived("softshrink", {"aten::softshrink"}, 1, floating,
            "cpu: where({0} > {1}, {0} - {1}, where({0} < -{1}, {0} + {1}, where({0} == {0}, 0, {0})));"
            "where({0} > {1}, {0} - {1}, where({0} < -{1}, {0} + {1}, {0} * 0))", all_reals),
    derived("threshold", {"aten::threshold"}, 1, same, "boolean: refuse; where({0} <= {1}, {2}, {0})", all_reals),

    // Gradients of activations: of the result ({0}) and of what the forward op was given, or gave.
    derived("logistic", {}, 1, floating, "1 / (1 + exp(-{0}))", all_reals),
    derived("threshold_backward", {"aten::threshold_backward"}, 2, same,
            "boolean: refuse; where({1} <= {2}, 0, {0})", all_reals),
    // ATen computes the next two in halves on CUDA.
    derived("sigmoid_backward", {"aten::sigmoid_backward"}, 2, floating,
            "cuda, half: rounded({0} * rounded(1 - {1})) * {1}; {0} * (1 - {1}) * {1}", all_reals),
    derived("tanh_backward", {"aten::tanh_backward"}, 2, floating,
            "cuda, half: {0} * rounded(1 - rounded({1} * {1})); {0} * fma(-{1}, {1}, 1)", all_reals),
    derived("gelu_backward", {"aten::gelu_backward"}, 2, floating,
            "{2}='tanh': {0} * gelu_tanh_slope({1}, {1} * {1},"
            "  tanh(0.7978845608028654 * fma(0.044715, {1} * {1} * {1}, {1})));"
            "{0} * (0.5 * (1 + erf({1} * 0.7071067811865476)) + {1} * exp(-0.5 * {1} * {1}) * 0.3989422804014327)",
            all_reals),
    derived("gelu_tanh_slope", {}, 3, floating,  // {1} is the square of {0}, {2} the tanh in its gelu
            "0.5 * (1 + {2}) + 0.5 * {0} * (1 - {2} * {2}) * (0.7978845608028654 * (1 + 3 * 0.044715 * {1}))",
            all_reals),
    derived("silu_backward", {"aten::silu_backward"}, 2, floating, "silu_slope({0}, {1}, logistic({1}))", all_reals),
    derived("silu_slope", {}, 3, floating, "{0} * {2} * (1 + {1} * (1 - {2}))", all_reals),
    derived("mish_backward", {"aten::mish_backward"}, 2, floating,
            "mish_slope({0}, {1}, tanh(log1p(exp({1}))))", all_reals),
    derived("mish_slope", {}, 3, floating, "{0} * ({2} + {1} * logistic({1}) * (1 - {2} * {2}))", all_reals),
    derived("softplus_backward", {"aten::softplus_backward"}, 2, floating,
            "where({1} * {2} > {3}, {0}, {0} * exp({1} * {2}) / (exp({1} * {2}) + 1))", all_reals),
    derived("log_sigmoid_backward", {"aten::log_sigmoid_backward"}, 2, floating,
            "cpu: log_sigmoid_slope({0}, {1}, {2}); log_sigmoid_slope({0}, {1}, exp(-abs({1})))", all_reals),
    derived("log_sigmoid_slope", {}, 3, floating,
            "{0} * (where({1} < 0, 1, 0) - where({1} < 0, 1, -1) * ({2} / (1 + {2})))", all_reals),
    derived("leaky_relu_backward", {"aten::leaky_relu_backward"}, 2, floating,
            "where({1} > 0, {0}, {0} * {2})", all_reals),
    derived("hardtanh_backward", {"aten::hardtanh_backward"}, 2, floating,
            "where(({1} <= {2}) | ({1} >= {3}), 0, {0})", all_reals),
    derived("hardsigmoid_backward", {"aten::hardsigmoid_backward"}, 2, floating,
            "where(({1} > -3) & ({1} < 3), {0} * 0.16666666666666666, 0)", all_reals),
    derived("hardswish_backward", {"aten::hardswish_backward"}, 2, floating,
            "where({1} <= -3, 0, where({1} < 3, {0} * ({1} / 3 + 0.5), {0}))", all_reals),
    derived("shrink_backward", {"aten::hardshrink_backward", "aten::softshrink_backward"}, 2, floating,
            "where(({1} >= -{2}) & ({1} <= {2}), 0, {0})", all_reals),
    derived("dropout_backward", {"aten::native_dropout_backward"}, 1, float_like, "{0} * where({1}, {2}, 0)", all_reals),
});
// clang-format on

}  // namespace sinter::ir::table
