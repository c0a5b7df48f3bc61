#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Attention written out, softmax(q x k^T * scale) x v in calls of `aten::bmm` and `aten::_softmax`, becomes a call of
/// `aten::scaled_dot_product_attention`, whose kernels keep the scores on the chip. They are rounded once less than
/// eager's. Copies that line operands up for the product are looked through, and what reads the result finds it in the
/// order in which most kernels write it, that of the query. A mask that is added to the scores is added there, as is
/// one under which scores become -inf; a row that it masks whole becomes one of NaN, which softmax gives and those
/// kernels would not. Needs and gives:
/// functional, not yet decomposed. Scores may have any rank of three or more: what stands in front of their last two
/// dims is a batch and its heads, where operands and mask lie so, as windows of one batch do. Numbers that queries or
/// keys were multiplied by go into the scale. On CUDA, for halves under Numerics::fast, where nothing else reads the
/// scores: a training step keeps them. Halves that are computed with in f32 are such: so LibTorch does where its
/// kernels would not take a mask as it lies, vectors that lie across, which are copied, or more than four dims. Over
/// few keys (and calls of LibTorch's fused kernels over few) it becomes an `ir::Attention` instead, under any number of
/// masks (short_attention.h): sizes known, compute capability 8.0. The kernels are those of FlashAttention (Dao et
/// al., 2022); Inductor looks for attention in the same way.
PassResult find_attention(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
