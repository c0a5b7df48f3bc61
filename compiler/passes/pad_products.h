#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Pads batched products of halves whose sizes keep tensor cores from loading 16 bytes at once: attention over 49 or
/// 197 tokens. The right operand of `aten::bmm` gets columns of zeros up to a multiple of eight, which are cut off the
/// result; where the left operand is a softmax along its rows, that is taken over further elements of -inf, which
/// become zeros, and the right operand gets as many rows of zeros. Products with a weight (`aten::mm`, `aten::addmm`)
/// whose filters, or elements of one, are no multiple of eight get further ones likewise; one that every batch of
/// `aten::bmm` shares is laid out the other way round where that serves. Padding and cutting are part of the kernels
/// around the product. Sums gain zeros at their end and nothing else; a row without a finite element is NaN as before.
/// Needs and gives: functional, not yet decomposed. On CUDA, under Numerics::fast, for large products only. The idea is
/// that of Inductor's shape padding.
PassResult pad_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
