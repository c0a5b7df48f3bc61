#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Drops nodes whose results nobody uses, arguments that a fused body does not read, and state that nothing reads.
/// Needs and gives: functional or fused. Calls that draw random numbers, are not known to be pure or return nothing
/// stay, and so do inputs.
PassResult dce(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
