#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Takes the gradient of the bias out of gradients of convolutions and sums it by a call of its own: it fuses with what
/// makes the gradient of the convolution's result (an activation's gradient, say), which is then read once less.
/// Needs: functional. Gives: functional.
///
/// On CUDA, where ATen calls cuDNN for the other two gradients and `sum` for this one. CPU libraries sum it along with
/// the weight's.
PassResult split_bias_gradients(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
