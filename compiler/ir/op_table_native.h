#pragma once

#include <cmath>
#include <functional>

#include "compiler/ir/op_table.h"
#include "compiler/ir/reference.h"

/// The ops that back ends implement. Columns: name, ATen names, arity, type rule, reference, CUDA, LLVM, test domain.
/// ATen names are empty where only expressions, or structural rules of decompose, use a row, or where a row of
/// op_table_derived.h stands for the ATen op.
namespace sinter::ir::table {

using ref::numbers;

// clang-format off
inline constexpr auto native_rows = std::to_array<OpRow>({
    // Conversion and choice.
    native("cast", {"aten::_to_copy"}, 1, cast, ref::cast, {"convert<{t}>({0})", {}}, written_by_back_ends, all_reals),
    native("where", {"aten::where"}, 3, select, ref::where, {"{0} ? {1} : {2}", {}},
           any("{r} = select {mask} {0}, {t} {1}, {t} {2}"), all_reals),

    // Arithmetic. Integers wrap; the sum of two bools is their `or`. `fma` is {0} * {1} + {2}, rounded once.
    native("add", {}, 2, same, numbers<ref::add, ref::add>, {"{0} + {1}", "wrap_add({0}, {1})"},
           binary<"fadd", "add", "add", "or">, all_reals),
    native("sub", {}, 2, same, numbers<ref::sub, ref::sub>, {"{0} - {1}", "wrap_sub({0}, {1})"},
           binary<"fsub", "sub", "sub", "">, all_reals),
    with_wide_numbers(everywhere, native("mul", {"aten::mul"}, 2, same, numbers<ref::mul, ref::mul>,
                             {"{0} * {1}", "wrap_mul({0}, {1})"}, binary<"fmul", "mul", "mul", "and">, all_reals)),
    with_wide_numbers(everywhere, native("div", {"aten::div"}, 2, float_like, ref::floats<ref::div>, {"{0} / {1}", {}},
                             binary<"fdiv", "", "", "">, nonzero_second)),
    // `ratio` is a quotient that is one even by a number; `div` by a number is ATen's product with its reciprocal on CUDA.
    native("ratio", {}, 2, floating, ref::floats<ref::div>, {"{0} / {1}", {}}, floats("{r} = fdiv {t} {0}, {1}"),
           nonzero_second),
    native("fma", {}, 3, floating, ref::fma, {"fma({0}, {1}, {2})", {}}, floats("intrinsic:fma"), all_reals),
    native("neg", {"aten::neg"}, 1, same, numbers<ref::neg, ref::neg>, {"-{0}", "wrap_neg({0})"},
           {"{r} = fneg {t} {0}", "{r} = sub {t} zeroinitializer, {0}", "{r} = sub {t} zeroinitializer, {0}", {}},
           all_reals),
    native("abs", {}, 1, same, numbers<std::fabs, ref::abs>, {"fabs({0})", "wrap_abs({0})"},
           {"intrinsic:fabs",
            "{r}.n = sub {t} zeroinitializer, {0}\n{r}.c = icmp slt {t} {0}, zeroinitializer\n"
            "{r} = select {mask} {r}.c, {t} {r}.n, {t} {0}",
            "{r} = add {t} {0}, zeroinitializer", {}}, all_reals),
    native("quotient", {}, 2, same, ref::ints<ref::quotient>, {"quotient({0}, {1})", {}},
           binary<"", "sdiv", "udiv", "">, nonzero_second),
    native("modulo", {}, 2, same, ref::ints<ref::modulo>, {"modulo({0}, {1})", {}},
           binary<"", "srem", "urem", "">, nonzero_second),
    native("fmod", {}, 2, floating, ref::floats<std::fmod>, {"fmod({0}, {1})", {}}, floats("call:fmod"),
           nonzero_second),

    // Extremes: maximum and minimum give NaN when either operand is NaN, fmax and fmin the other operand.
    native("maximum", {"aten::maximum"}, 2, same, numbers<ref::maximum, ref::maximum>, {"maximum({0}, {1})", {}},
           {float_extreme<"ugt", "{1}">, "intrinsic:smax", "intrinsic:umax", "{r} = or {t} {0}, {1}"}, all_reals),
    native("minimum", {"aten::minimum"}, 2, same, numbers<ref::minimum, ref::minimum>, {"minimum({0}, {1})", {}},
           {float_extreme<"ult", "{1}">, "intrinsic:smin", "intrinsic:umin", "{r} = and {t} {0}, {1}"}, all_reals),
    native("fmax", {"aten::fmax"}, 2, same, numbers<std::fmax, ref::maximum>, {"fmax({0}, {1})", "maximum({0}, {1})"},
           {float_extreme<"oge", "{0}">, "intrinsic:smax", "intrinsic:umax", "{r} = or {t} {0}, {1}"}, all_reals),
    native("fmin", {"aten::fmin"}, 2, same, numbers<std::fmin, ref::minimum>, {"fmin({0}, {1})", "minimum({0}, {1})"},
           {float_extreme<"ole", "{0}">, "intrinsic:smin", "intrinsic:umin", "{r} = and {t} {0}, {1}"}, all_reals),

    // Comparisons: unordered ones are false, except `ne`.
    native("eq", {"aten::eq"}, 2, TypeRule::compare, ref::compare<std::equal_to<>{}>, {"{0} == {1}", {}},
           comparison<"oeq", "eq", "eq">, all_reals),
    native("ne", {"aten::ne"}, 2, TypeRule::compare, ref::compare<std::not_equal_to<>{}>, {"{0} != {1}", {}},
           comparison<"une", "ne", "ne">, all_reals),
    native("lt", {"aten::lt"}, 2, TypeRule::compare, ref::compare<std::less<>{}>, {"{0} < {1}", {}},
           comparison<"olt", "slt", "ult">, all_reals),
    native("le", {"aten::le"}, 2, TypeRule::compare, ref::compare<std::less_equal<>{}>, {"{0} <= {1}", {}},
           comparison<"ole", "sle", "ule">, all_reals),
    native("gt", {"aten::gt"}, 2, TypeRule::compare, ref::compare<std::greater<>{}>, {"{0} > {1}", {}},
           comparison<"ogt", "sgt", "ugt">, all_reals),
    native("ge", {"aten::ge"}, 2, TypeRule::compare, ref::compare<std::greater_equal<>{}>, {"{0} >= {1}", {}},
           comparison<"oge", "sge", "uge">, all_reals),

    // Bits. Amounts of shift_left and shift_right are within the width; the ATen rows see to it.
    native("bitwise_and", {"aten::bitwise_and"}, 2, integral, ref::ints<ref::bit_and>, {"{0} & {1}", {}},
           bits("{r} = and {t} {0}, {1}"), all_reals),
    native("bitwise_or", {"aten::bitwise_or"}, 2, integral, ref::ints<ref::bit_or>, {"{0} | {1}", {}},
           bits("{r} = or {t} {0}, {1}"), all_reals),
    native("bitwise_xor", {"aten::bitwise_xor"}, 2, integral, ref::ints<ref::bit_xor>, {"{0} ^ {1}", {}},
           bits("{r} = xor {t} {0}, {1}"), all_reals),
    native("bitwise_not", {"aten::bitwise_not"}, 1, integral, ref::bitwise_not, {"invert({0})", {}},
           bits("{r}.true = icmp eq {t} {0}, {0}\n{r}.ones = sext {mask} {r}.true to {t}\n{r} = xor {t} {0}, {r}.ones",
                "{r} = icmp eq {t} {0}, zeroinitializer"), all_reals),
    native("shift_left", {}, 2, integral, ref::ints<ref::shift_left>, {"shift_left({0}, {1})", {}},
           binary<"", "shl", "shl", "">, small_shift),
    native("shift_right", {}, 2, integral, ref::ints<ref::shift_right>, {"shift_right({0}, {1})", {}},
           binary<"", "ashr", "lshr", "">, small_shift),

    // Rounding, roots and signs. `round` takes halves to even.
    native("floor", {}, 1, floating, ref::floats<std::floor>, {"floor({0})", {}}, floats("intrinsic:floor"), all_reals),
    native("ceil", {}, 1, floating, ref::floats<std::ceil>, {"ceil({0})", {}}, floats("intrinsic:ceil"), all_reals),
    native("trunc", {}, 1, floating, ref::floats<std::trunc>, {"trunc({0})", {}}, floats("intrinsic:trunc"), all_reals),
    native("round", {}, 1, floating, ref::floats<ref::round_even>, {"rint({0})", {}}, floats("intrinsic:rint"),
           all_reals),
    native("sqrt", {"aten::sqrt"}, 1, float_like, ref::floats<std::sqrt>, {"sqrt({0})", {}}, floats("intrinsic:sqrt"),
           positive),
    native("rsqrt", {}, 1, float_like, ref::floats<ref::rsqrt>, {"rsqrt({0})", {}}, floats("inverse:sqrt"), positive),
    native("copysign", {"aten::copysign"}, 2, float_like, ref::floats<std::copysign>, {"copysign({0}, {1})", {}},
           floats("intrinsic:copysign"), all_reals),
    native("nextafter", {}, 2, floating, ref::nextafter, {"nextafter({0}, {1})", {}}, floats("call:nextafter"),
           all_reals),

    // Exponentials, logarithms and powers.
    maths<"exp", std::exp>(all_reals),
    maths<"exp2", std::exp2>(all_reals),
    maths<"expm1", std::expm1>(all_reals),
    maths<"log", std::log>(positive),
    maths<"log2", std::log2>(positive),
    maths<"log10", std::log10>(positive),
    maths<"log1p", std::log1p>(positive),
    native("pow", {}, 2, floating, ref::floats<std::pow>, {"pow({0}, {1})", {}}, floats("call:pow"), positive),
    native("hypot", {"aten::hypot"}, 2, floating, ref::floats<std::hypot>, {"hypot({0}, {1})", {}},
           floats("call:hypot"), all_reals),

    // Trigonometric, hyperbolic and error functions.
    maths<"sin", std::sin>(all_reals),
    maths<"cos", std::cos>(all_reals),
    maths<"tan", std::tan>(all_reals),
    maths<"asin", std::asin>(symmetric_unit),
    maths<"acos", std::acos>(symmetric_unit),
    maths<"atan", std::atan>(all_reals),
    maths<"sinh", std::sinh>(all_reals),
    maths<"cosh", std::cosh>(all_reals),
    maths<"tanh", std::tanh>(all_reals),
    maths<"asinh", std::asinh>(all_reals, {}),
    maths<"acosh", std::acosh>(at_least_one, {}),
    maths<"atanh", std::atanh>(symmetric_unit),
    maths<"erf", std::erf>(all_reals),
    maths<"erfc", std::erfc>(all_reals),
    maths<"lgamma", std::lgamma>(positive),
    native("atan2", {"aten::atan2"}, 2, float_like, ref::floats<std::atan2>, {"atan2({0}, {1})", {}},
           floats("call:atan2"), all_reals),
});
// clang-format on

}  // namespace sinter::ir::table
