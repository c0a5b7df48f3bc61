#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Rewrites to the simplest form, exactly: identity casts and views go, views of views become one, numbers are folded
/// and stand right of values, arithmetic that changes no bit (x * 1, x - 0, x / 1) goes. Needs and gives: functional or
/// fused. An output keeps memory of its own where eager gave it some.
PassResult canonicalize(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
