#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// Nodes that must run, or whose results a live node or an output reads, in their order, and how often those read each
/// value. Inputs are live.
struct LiveNodes {
  std::vector<ir::NodeId> order;
  std::vector<uint32_t> uses;  ///< by value
};
[[nodiscard]] LiveNodes live_nodes(const ir::Graph& graph);

}  // namespace sinter::passes
