#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Convolutions that a ReLU follows, after a bias, a batch norm in inference and a further summand as there are any,
/// are calls of `aten::cudnn_convolution_relu` and `cudnn_convolution_add_relu`, which store the result alone: the bias
/// and the ReLU then take no time. Batch norm scales the weights and shifts the bias, where all of them are frozen or
/// the result is much larger than the weights. These are rounded anew, which is an error of the size of the rounding of
/// the convolution's result that goes. Where the summand is a convolution with batch norm as well, its shift joins the
/// bias. Needs and gives: functional, not yet decomposed. On CUDA with cuDNN, for images of halves under
/// Numerics::fast, of static sizes.
PassResult convolution_epilogues(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
