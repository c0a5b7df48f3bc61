#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Takes the bias out of convolutions whose library adds it in a pass of its own over the result, and adds it with a
/// primitive: that fuses with the activation behind it, so that the result is read and written once less.
/// Needs: functional, decomposed. Gives: functional.
///
/// On CUDA that is every convolution but the depthwise ones: ATen calls cuDNN without the bias, then `add_`; its own
/// depthwise kernels take it along. CPU libraries take it too. The sum is the one eager computes, rounding included.
PassResult split_bias(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
