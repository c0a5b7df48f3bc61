#pragma once

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// Runs `rewrite(Graph&) -> int64_t` on a copy of every fused body; where it made changes the node gets the new body.
template <class Rewrite>
int64_t rewrite_bodies(ir::Graph& graph, Rewrite&& rewrite) {
  int64_t changes = 0;
  for (ir::NodeId id : graph.order()) {
    auto* fused = graph.node(id).as<ir::Fused>();
    if (fused == nullptr) continue;
    auto body = std::make_shared<ir::Graph>(*fused->body);
    const int64_t made = rewrite(*body);
    if (made > 0) fused->body = std::move(body);
    changes += made;
  }
  return changes;
}

}  // namespace sinter::passes
