#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Lays the values around convolutions out channels-last where the device's convolutions are faster that way.
/// Needs: functional, decomposed. Gives: functional.
///
/// A convolution gets its input and weight in channels-last order and gives such a result, and so does its backward
/// pass; primitives, pooling and batch norm, forward and backward, and depthwise convolutions that expand_windows
/// generates, follow their operands, and views see the same elements where they now are; every other use, and every
/// graph output, sees the layout it was captured with, through a copy. A primitive whose operand lies channels-last as
/// it was captured follows it where generated windows alone read the result. Copies are `cast` nodes between equal
/// dtypes, which fuse into whatever computes the value. The idea is that of Inductor's layout optimisation and of
/// cuDNN's guidance for tensor cores.
PassResult choose_layouts(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
