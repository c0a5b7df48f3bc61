#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Turns max pools on CUDA whose indices nothing but their gradients reads, and these gradients, into primitives, where
/// windows lie side by side. Which element of its window was the largest is kept in a byte, not as an index of eight;
/// the gradient of an element is that of its window or zero, and fuses with the gradient of what stands before the
/// pool. Needs and gives: functional, with the layouts that choose_layouts chose. Never where sizes are parameters of
/// kernels.
PassResult expand_pool_gradients(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
