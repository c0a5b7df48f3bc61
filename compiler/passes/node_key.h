#pragma once

#include <span>
#include <string>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// What a call, computed node or view computes of these arguments, as text: nodes with equal texts have equal results.
/// `args` stand for the node's own. Empty for other nodes, and for those whose results share memory with others.
[[nodiscard]] std::string node_key(const ir::Graph& graph, const ir::Node& node, std::span<const ir::Arg> args);

}  // namespace sinter::passes
