#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// By NodeId: nodes whose results may be computed once and kept: those that depend on nothing, such as the mask of an
/// attention, and with `freeze` those that depend on state alone. Never nodes with an effect, nor those that make the
/// memory of an output (a caller may write to what it was given), nor calls whose result aliases another value. What
/// was not asked for takes little memory: without `freeze`, results of more than a mebibyte are not kept.
[[nodiscard]] std::vector<bool> frozen_nodes(const ir::Graph& graph, bool freeze);

}  // namespace sinter::passes
