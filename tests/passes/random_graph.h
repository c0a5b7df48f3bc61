#pragma once

#include <cstdint>

#include "compiler/ir/graph.h"
#include "compiler/ir/interpret.h"

namespace sinter::passes {

/// A functional graph of primitives, joins, views (slices, transposes, reshapes, broadcasts), constants, casts and
/// opaque calls over small tensors, the same for the same seed. Numbers stay small integers mostly, so that sums are
/// exact.
[[nodiscard]] ir::Graph random_graph(uint64_t seed);

/// Inputs and state for such a graph, and an answer to its calls.
[[nodiscard]] ir::Environment random_environment(const ir::Graph& graph, uint64_t seed);

}  // namespace sinter::passes
