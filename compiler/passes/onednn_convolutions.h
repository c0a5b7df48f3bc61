#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On the CPU, gives convolutions of f32 images to oneDNN with what follows: a batch norm in inference goes into the
/// weights, a sum and an activation cost nothing as it stores. Weights that are computed once are kept in the library's
/// own layout. For numerics = fast: sums have another order. Needs and gives: functional.
PassResult onednn_convolutions(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
