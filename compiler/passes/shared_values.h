#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// Values that the bodies of several fused nodes compute each for itself, because fuse copies what is cheap (spread.h).
/// One entry for each fused node, in the graph's order; in it, by ValueId of the body, whether another body has the
/// value too. Needs: fused, with equal values of a body merged.
[[nodiscard]] std::vector<std::vector<bool>> shared_values(const ir::Graph& graph);

}  // namespace sinter::passes
