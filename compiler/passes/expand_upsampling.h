#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Turns calls that repeat the elements of an image a whole number of times along its axes (nearest neighbours, `exact`
/// or not) into a view that steps 0 from one repetition to the next, and a copy of it, which kernels around it take in.
/// Only where ATen's arithmetic of indices gives the same elements. Needs and gives: functional, with the layouts that
/// choose_layouts chose. On CUDA, never where sizes are parameters of kernels.
PassResult expand_upsampling(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
