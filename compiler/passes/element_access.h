#pragma once

#include <cstddef>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// True when a fused body reads input `index` only at the very element it is about to write: never through a view,
/// never broadcast. Then an output of the same type may lie in the same memory.
[[nodiscard]] bool reads_elementwise(const ir::Graph& body, size_t index);

}  // namespace sinter::passes
