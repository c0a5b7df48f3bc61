#pragma once

#include <cstdint>
#include <functional>

#include "compiler/ir/graph.h"

namespace sinter::test {

/// A fused body drawn from a seed: a few pointwise ops over inputs of several dtypes, broadcast, transposed, sliced and
/// reshaped, before and after they are computed, with one to three outputs. The same seed gives the same graph.
[[nodiscard]] ir::Graph random_body(uint64_t seed);

/// The smallest graph found for which `fails` still holds, by dropping outputs and by turning computed values into
/// inputs or outputs.
[[nodiscard]] ir::Graph shrink(ir::Graph graph, const std::function<bool(const ir::Graph&)>& fails);

}  // namespace sinter::test
