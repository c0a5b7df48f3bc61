#pragma once

#include <span>

#include "compiler/ir/graph.h"
#include "compiler/ir/view_source.h"

namespace sinter::kernel {

/// What one kernel is to compute: primitives, reductions and joins of a graph, up to the values that others need.
/// Whatever else they read comes from memory. The graph outlives the region.
struct Region {
  const ir::Graph& graph;
  std::span<const ir::NodeId> members;   ///< in execution order
  std::span<const ir::ValueId> outputs;  ///< results of members
};

/// An operand of a member as its region sees it: memory of `source.base` looked at as the operand's type. A host scalar
/// (a 0-dim CPU tensor beside a CUDA region) is taken as it is, never through its views.
[[nodiscard]] inline ir::ViewSource region_operand(const ir::Graph& graph, ir::ValueId operand) {
  if (graph.type(operand).device != graph.device) return {operand, 0, false};
  return ir::view_source(graph, operand);
}

}  // namespace sinter::kernel
