#pragma once

#include <cstdint>
#include <vector>

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Nodes that dce keeps, in their order, and how often they and the outputs read each value.
struct LiveNodes {
  std::vector<ir::NodeId> order;
  std::vector<uint32_t> uses;
};
[[nodiscard]] LiveNodes live_nodes(const ir::Graph& graph);

/// Drops nodes whose results nobody uses, arguments that a fused body does not read, and state that nothing reads.
/// Needs and gives: functional or fused. Calls that draw random numbers, are not known to be pure or return nothing
/// stay, and so do inputs.
PassResult dce(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
