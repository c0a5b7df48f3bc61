#pragma once

#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On CUDA, calls a convolution of halves whose windows are patches that tile the image side by side, and whose
/// channels are few, by what it is: a product of the patches, copied into rows, with the weight. Vision transformers
/// begin with one. cuDNN wants eight channels, and has images of three padded. For numerics = fast: a bias is added
/// before the only rounding. Needs: functional, results of convolutions in the layout that they keep. Gives:
/// functional.
PassResult patch_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
