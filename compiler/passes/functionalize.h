#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Turns aliases and writes into pure values. Needs: captured. Gives: functional.
///
/// Every storage has a current value; an alias of it becomes a `view` of that value, a write makes a new one, and
/// later reads of any alias see it. Pointwise writes become the op's pure form, copies and fills become casts, and any
/// other op that writes runs in place on a copy of its own. Looks at a storage that a view cannot describe (another
/// dtype, conjugation, memory outside the base) stay ATen calls whose result keeps its alias.
///
/// What is written to an input or to state becomes a `write` at the end, a write-back; an output that lies in their
/// memory is that memory. A call that writes a tensor it does not return runs on a copy that is looked at afterwards.
/// Throws InternalError on a write through another dtype: capture breaks on those.
PassResult functionalize(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
