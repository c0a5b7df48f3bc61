#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Turns gradients of max pools on CUDA into primitives, which fuse with the gradient of what stands before the pool:
/// that of an element is the sum over the windows that have chosen it. Where windows lie side by side, and nothing else
/// reads the indices, the pool is turned into primitives too, and keeps in a byte which element of its window was the
/// largest, in place of an index of eight; elsewhere the library gives the indices.
/// Needs and gives: functional, with the layouts that choose_layouts chose. Never where sizes are parameters of
/// kernels.
PassResult expand_pool_gradients(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
