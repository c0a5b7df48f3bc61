#pragma once

#include "compiler/ir/graph.h"
#include "compiler/passes/aten.h"

namespace sinter::passes {

/// True for nodes that must run as often, and in the order, they were captured: they draw random numbers, are not
/// known to be pure, return nothing, or write.
[[nodiscard]] inline bool has_effect(const ir::Node& node) {
  if (node.as<ir::Write>() != nullptr) return true;
  const auto* call = node.as<ir::Call>();
  return call != nullptr && (call->random || call->impure || node.results.empty());
}

/// True for nodes that must run whether their results are read or not: those with an effect, and calls that may throw.
[[nodiscard]] inline bool must_run(const ir::Graph& graph, const ir::Node& node) {
  return has_effect(node) || may_refuse(graph, node);
}

}  // namespace sinter::passes
