#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// A tensor that is written part by part until nothing is left of what it was is the join of its parts, and who reads
/// a part in between reads what was written there, or what was there before. So loops over rows, and gates or channels
/// that are written in place, become kernels that store the tensor once. Parts are ranges of one dim of a contiguous
/// tensor of at most 16 MiB: all are held until the last is there. Needs and gives: functional.
PassResult join_parts(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
