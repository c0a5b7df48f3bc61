#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Under fast numerics, leaves out the rounding of a half inside a kernel where nothing but continuous arithmetic of
/// that kernel sees it. A half has one value: all its users take it wide, or all take it rounded. It stays rounded
/// where it is stored, seen through a view, converted to anything but f32, or computed in several kernels; and
/// where a comparison or another jump depends on it, so that what decides is what eager decides by. Needs and gives:
/// fused, with equal values merged.
PassResult widen(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
