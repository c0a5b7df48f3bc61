#pragma once

#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Sums of columns beside reductions of rows of the same elements (the gradients of a norm's weight and input): makes
/// two reductions of such a sum, over groups of rows and over the groups. The kernel that goes through the rows then
/// gives the first ones too, and nothing is read again for them. The order of summation depends on sizes and the
/// device alone.
/// Needs: functional. Gives: functional.
PassResult group_rows(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
