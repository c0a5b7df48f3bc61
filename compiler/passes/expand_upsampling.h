#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Turns calls that repeat the elements of an image a whole number of times along its axes (nearest neighbours, `exact`
/// or not; interpolation of a single pixel, as of a global pool) into a view that steps 0 from one repetition to the
/// next, and a copy of it, which kernels around it take in. LibTorch's weights of a single pixel add up to 1; an
/// infinite one, which times a weight of 0 is NaN there, stays infinite here. Linear interpolation by whole factors
/// becomes sums of views (interpolation.h). Only where ATen's arithmetic of indices gives the same elements. Needs
/// and gives: functional, with the layouts that choose_layouts chose. On CUDA, never where sizes are parameters of
/// kernels.
PassResult expand_upsampling(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
