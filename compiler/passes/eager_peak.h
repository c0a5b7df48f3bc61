#pragma once

#include <cstdint>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// Most bytes that the tensors a captured graph makes hold at once when each storage is freed after its last use: what
/// eager execution needs at least. Inputs, state and workspaces inside ops are not counted.
[[nodiscard]] int64_t eager_peak_bytes(const ir::Graph& captured);

}  // namespace sinter::passes
