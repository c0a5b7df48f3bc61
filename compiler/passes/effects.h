#pragma once

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// True for nodes that must run as often, and in the order, they were captured: they draw random numbers, are not
/// known to be pure, return nothing, are read by the host, or write.
[[nodiscard]] inline bool has_effect(const ir::Node& node) {
  if (node.as<ir::Write>() != nullptr) return true;
  const auto* call = node.as<ir::Call>();
  return call != nullptr && (call->random || call->impure || call->read || node.results.empty());
}

}  // namespace sinter::passes
