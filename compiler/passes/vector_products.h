#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On CUDA, computes batched products of matrices with one vector each as sums of products. Every element of the
/// matrices is read once, so that memory bounds them and tensor cores would idle; what computes the operands and reads
/// the result can be in the same kernel. For numerics = fast: sums are in another order than the library's. Needs and
/// gives: functional, not yet decomposed.
PassResult vector_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
