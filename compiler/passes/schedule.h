#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// An order in which regions and all other nodes can run: every unit after what it reads, effects in their captured
/// order, otherwise as close to the captured order as that allows. `leaders` gives each node's region (itself where it
/// is in none); views belong to no unit and are left out. Returns the units' leaders. Throws InternalError when the
/// regions depend on each other in a circle.
[[nodiscard]] std::vector<ir::NodeId> unit_order(const ir::Graph& graph, const std::vector<ir::NodeId>& leaders);

}  // namespace sinter::passes
