#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On CUDA, calls a convolution of halves over groups of channels by what it is, where cuDNN is slow: a batch of
/// products, one a group, of the windows, copied into rows, with the weight. Slow are kernels of many taps, which it
/// computes a group at a time without tensor cores, and groups of a width that it has no kernel for. The copy is as
/// many times the image as there are taps; windows of one pixel need none. For numerics = fast. Needs: functional,
/// results of convolutions in the layout that they keep, biases taken out. Gives: functional.
PassResult grouped_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
