#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On CUDA, computes values again that would otherwise be kept over the point where most memory is held: in a training
/// step what the forward pass leaves to the backward pass. Of all values from which the rest follows by pointwise
/// operations those of the fewest bytes are kept, by a minimum cut, as PyTorch's min-cut partitioner (functorch, 2022)
/// does it. What library calls read and what the call returns is kept anyway and counts for nothing. Calls, reductions,
/// joins, copies to another layout, and what was in memory once for others, are never done again. Needs and gives:
/// functional.
PassResult rematerialize(ir::Graph& graph, const PassContext& context);

/// The same where at least so many bytes are gained: for tests over small graphs.
PassResult rematerialize_from(int64_t least, ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
