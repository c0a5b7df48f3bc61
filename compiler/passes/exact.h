#pragma once

#include <optional>
#include <string_view>

#include "compiler/ir/graph.h"

/// Facts about primitives that hold bit for bit, NaN, infinities and signed zeros included.
namespace sinter::passes {

/// True when every value of `from` is a value of `to`.
[[nodiscard]] bool holds_exactly(ir::DType to, ir::DType from);

/// True for ops that give the same with their two operands swapped.
[[nodiscard]] bool is_commutative(std::string_view op);

/// The operand that the node's result equals, whatever its value: x * 1, x / 1, x - 0, and x + 0 for integers.
[[nodiscard]] const ir::ValueId* unchanged_operand(const ir::Graph& graph, const ir::Node& node);

/// The number as a value of this dtype, written as primitives write their numbers (double, int64_t or bool). Nothing
/// for halves, whose rounding is left to the generated code.
[[nodiscard]] std::optional<ir::Arg> convert_exactly(const ir::Arg& number, ir::DType dtype);

/// Computes a primitive whose operands are all numbers, in the result's dtype. Nothing for comparisons, whose operands
/// have a dtype that the numbers do not tell, and for halves.
[[nodiscard]] std::optional<ir::Arg> evaluate_numbers(const ir::Node& node, ir::DType dtype);

}  // namespace sinter::passes
