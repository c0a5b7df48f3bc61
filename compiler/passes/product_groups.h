#pragma once

#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/columns.h"
#include "compiler/passes/product.h"

namespace sinter::passes {

/// One of several products that become one, and where its result then lies.
struct MergedPart {
  ir::NodeId node;
  Product product;
  Columns columns;
  bool copied = false;  ///< the result is copied into memory of its own
};

/// Products that become one each, as merge_products.h says: two or more of the same left operand, in the graph's order.
/// All of a group have a bias or none, and right operands that are transposed or not.
[[nodiscard]] std::vector<std::vector<MergedPart>> product_groups(const ir::Graph& graph, bool freeze);

/// True for a matrix whose elements are adjacent in memory along its columns, as in the transpose of a weight; false
/// where they are along its rows.
[[nodiscard]] bool is_transposed(const ir::Type& right);

}  // namespace sinter::passes
