#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// By NodeId: nodes whose results depend on state alone, so that they may be computed once and kept. Never nodes with
/// an effect, nor those that make the memory of an output (a caller may write to what it was given), nor calls whose
/// result aliases another value.
[[nodiscard]] std::vector<bool> frozen_nodes(const ir::Graph& graph);

}  // namespace sinter::passes
