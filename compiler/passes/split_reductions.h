#pragma once

#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Makes two reductions of a large one that has too few rows to keep a GPU busy: over parts of each row, then over the
/// parts. The order of summation depends on sizes alone, so that results are the same from run to run.
/// Needs: functional. Gives: functional.
PassResult split_reductions(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
