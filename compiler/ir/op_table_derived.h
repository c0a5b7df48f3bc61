#pragma once

#include "compiler/ir/op_table.h"

/// The ops that the decompose pass rewrites into native ones. Columns: name, ATen names, arity, type rule, expression
/// (grammar in expression.h), test domain. The first alternative whose guard holds is taken; where none does, the ATen
/// call stays a call.
namespace sinter::ir::table {

inline constexpr auto derived_rows = std::to_array<OpRow>({
    derived("aten_add", {"aten::add"}, 2, same, "{0} + {1} * {2}", all_reals),
    derived("aten_sub", {"aten::sub"}, 2, same, "{0} - {1} * {2}", all_reals),
    derived("relu", {"aten::relu"}, 1, same, "maximum({0}, 0)", all_reals),
    derived("sigmoid", {"aten::sigmoid"}, 1, float_like, "1 / (1 + exp(-{0}))", all_reals),
    derived("silu", {"aten::silu"}, 1, floating, "{0} / (1 + exp(-{0}))", all_reals),
    derived("rsqrt", {"aten::rsqrt"}, 1, float_like, "1 / sqrt({0})", positive),
});

}  // namespace sinter::ir::table
