#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Gives batch norms by the statistics of their batch, where kernels are generated for them, one pure form: a call of
/// aten::_native_batch_norm_legit_functional and copies to the running statistics, or of
/// aten::_native_batch_norm_legit.no_stats where none are kept. What cuDNN reserves for its backward pass is not there
/// then: such a backward pass becomes aten::native_batch_norm_backward, which needs none. The first step of
/// `functionalize`, on captured graphs. All of these are ATen's own ops and stay right where no kernel takes their
/// place.
///
/// A call stays as it was where its reserve is read elsewhere, and where cuDNN moves fewer bytes. cuDNN reads the input
/// twice and writes once. A generated kernel whose blocks hold the channels reads it from memory once, and again from
/// caches. Where the reduction is split (reduction_shape.h), three kernels read it; what they save is to store the
/// output and read it again for the pointwise operator that follows, so there must be one.
PassResult pure_batch_norm(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
