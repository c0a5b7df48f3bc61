#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "compiler/ir/graph.h"
#include "compiler/ir/size_expression.h"

namespace sinter::ir {

/// The term of a dim of a value.
using SizeOf = std::function<SizeId(ValueId value, uint32_t dim)>;

/// How size `dim` of result 0 follows from the sizes of the arguments, for operators whose rule is no simple form of
/// one size: windows that slide over a dim, diagonals, slices that end within the dim or with it. Nothing for others,
/// for transposed convolutions and for sizes rounded up. What it says holds for the arguments that `node` has.
[[nodiscard]] std::optional<SizeId> size_by_rule(const Graph& graph, const Node& node, uint32_t dim, SizeTable& table,
                                                 const SizeOf& size_of);

}  // namespace sinter::ir
