#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On CUDA, calls a convolution of halves over images of one pixel by what it is, a product of matrices: squeeze and
/// excitation asks for two in every block. cuDNN chooses kernels for images there, and copies images and weights whose
/// channels are no multiple of eight into another layout. For numerics = fast: a bias is added before the only
/// rounding. On the CPU the same of f32: few pixels are products that need no library (sum_products.h).
PassResult pixel_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
