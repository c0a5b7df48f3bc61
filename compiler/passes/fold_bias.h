#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Gives the bias to the matrix product where adding it would be a kernel of its own: `aten::mm`, then a region that
/// adds a vector along the last dim and nothing else, becomes `aten::addmm`, whose library adds it before the product
/// is stored. LibTorch's own `linear` of tensors with three dims and more leaves the bias to a second pass. Needs and
/// gives: fused. On CUDA, for halves under Numerics::fast (a sum of f32 would differ in its last bit): a half is then
/// rounded once, where eager rounds the product too. A bias that shares a kernel with what follows stays there.
PassResult fold_bias(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
