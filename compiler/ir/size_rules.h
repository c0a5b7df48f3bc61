#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/graph.h"

namespace sinter::ir {

/// A dim that windows slide over: its result has (size + shift) / stride + 1 places, rounded down.
struct WindowRule {
  uint32_t operand = 0;  ///< position of the argument it slides over
  int64_t shift = 0;
  int64_t stride = 1;
};

/// How size `dim` of result 0 of a convolution or a pooling follows from the same dim of its first argument; nothing
/// for other operators and dims, transposed convolutions and sizes rounded up.
[[nodiscard]] std::optional<WindowRule> window_rule(const Graph& graph, const Node& node, uint32_t dim);

}  // namespace sinter::ir
