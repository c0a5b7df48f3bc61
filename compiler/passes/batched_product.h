#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "compiler/ir/graph.h"
#include "compiler/passes/aligned_halves.h"

/// Products of attention and the softmax between them, as calls of ATen.
namespace sinter::passes {

/// A product of matrices, one for each of a batch.
struct BatchedProduct {
  ir::ValueId left;    ///< [batch, rows, inner]
  ir::ValueId right;   ///< [batch, inner, columns]
  ir::ValueId result;  ///< row-major
};

/// The node as `aten::bmm` of static sizes; nothing where it is none.
[[nodiscard]] std::optional<BatchedProduct> batched_product(const ir::Graph& graph, const ir::Node& node);

/// True for `aten::_softmax` along the rows of a row-major result.
[[nodiscard]] bool is_softmax_of_rows(const ir::Graph& graph, const ir::Node& node);
/// The same for `aten::_safe_softmax`, which gives zeros for a row of -inf alone, without a cast.
[[nodiscard]] bool is_safe_softmax_of_rows(const ir::Graph& graph, const ir::Node& node);

/// The value behind reshapes, if it and they are read once each. `uses` are those of the graph (use_counts).
[[nodiscard]] std::optional<ir::ValueId> behind_reshapes(const ir::Graph& graph, std::span<const uint32_t> uses,
                                                         ir::ValueId value);

}  // namespace sinter::passes
