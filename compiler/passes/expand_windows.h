#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Turns calls over small windows of an image on CUDA (max and average pools, depthwise convolutions) into a join with
/// the padding, a view whose windows overlap, a product with the weights, and a reduction over the taps. A max pool is
/// one where nothing uses its indices. Needs and gives: functional, with the layouts that choose_layouts chose. Sums
/// are in f32 and rounded once. Never where sizes are parameters of kernels, nor where input and result lie in memory
/// differently.
PassResult expand_windows(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
