#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Merges pure nodes that compute the same, on the whole graph and inside fused bodies. Needs and gives: functional or
/// fused. Two outputs never become one: eager gave the caller two tensors.
PassResult cse(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
