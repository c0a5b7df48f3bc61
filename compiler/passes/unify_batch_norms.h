#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Calls batch norm in training, and its gradient, by one form for which decompose has kernels.
/// Needs and gives: captured.
///
/// cuDNN's form keeps memory for its own backward pass that no other can read, and every form writes the running
/// statistics as a side effect. Both become `_native_batch_norm_legit_functional`, which returns new statistics, with a
/// copy into the old ones behind it, and `native_batch_norm_backward`. Left alone: what decompose has no kernels for,
/// and what cuDNN keeps where anything but its backward pass in this graph reads it.
PassResult unify_batch_norms(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
