#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Calls a batched product whose right matrix is one and the same for the whole batch by what it is, one product of all
/// rows. LibTorch's linear layer batches so where its input has more than three dims and does not lie row-major:
/// windows of an image, say, of 7 rows each, which fill no tile of a tensor core. For numerics = fast: the library may
/// sum in another order.
PassResult fold_batches(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
