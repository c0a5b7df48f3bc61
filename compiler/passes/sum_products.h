#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On CUDA, computes products of matrices as sums of products of elements, in generated kernels, where that takes less
/// time than the library's: matrices with one vector each, whose every element is read once, so that memory bounds them
/// and tensor cores would idle; and small products, with batches or a bias or without. What computes the operands and
/// reads the result can be in the same kernel. For numerics = fast: sums are in another order than the library's, and a
/// bias is added before the only rounding. On the CPU the same of f32: products with one vector, and small ones
/// with a few. Needs and gives: functional, not yet decomposed.
PassResult sum_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
