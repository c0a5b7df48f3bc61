#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On CUDA, calls convolutions over lines ([batch, channels, length]), and their gradients, as such over images of one
/// row, by views. LibTorch does so inside the call; where it stands in the graph, the passes that choose layouts and
/// generate kernels for images serve lines too. Needs and gives: functional.
PassResult lift_convolutions(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
