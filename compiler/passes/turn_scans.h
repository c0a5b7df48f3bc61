#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Running sums and products along a dim whose elements lie apart (`x.cumsum(0)` of [tokens, experts]) are taken along
/// the last dim of a copy instead. ATen's kernel gives such a column to one thread, which waits for memory once an
/// element; along the last dim many threads share a row. The copies before and after become part of kernels. Needs and
/// gives: functional. On CUDA, where there are few long columns; those of floats under Numerics::fast, as they are
/// summed in another order. Static sizes only.
PassResult turn_scans(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
