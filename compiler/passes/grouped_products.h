#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On CUDA, calls a convolution of halves over groups of channels whose kernels have many taps by what it is: a batch
/// of products, one a group, of the windows, copied into rows, with the weight. cuDNN has no kernel on tensor cores for
/// it, and computes each group by itself. The copy is as many times the image as there are taps, so that it pays where
/// groups are wide and memory is there for it. For numerics = fast. Needs: functional, results of convolutions in the
/// layout that they keep, biases taken out. Gives: functional.
PassResult grouped_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
