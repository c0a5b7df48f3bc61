#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// By value that has memory of its own: the last position in the order that reads or makes something in that memory.
/// What the graph returns lives to its end, one past the last position.
[[nodiscard]] std::vector<size_t> last_uses(const ir::Graph& graph);

/// Bytes that a tensor of a static type takes, gaps between its elements included; 0 for other types.
[[nodiscard]] int64_t memory_bytes(const ir::Type& type);

}  // namespace sinter::passes
