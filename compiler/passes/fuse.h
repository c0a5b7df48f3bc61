#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Joins primitives, and the views between them, into regions that become one kernel each. Needs: functional, without
/// dead nodes. Gives: fused.
///
/// Greedy, by bytes saved: a producer joins its consumer when the outputs of both together have the same sizes, every
/// read has an index (ir/index.h), the region stays within its limits, and no path leaves the region and comes back.
/// Reductions that read one value join too where one kernel does both, so that it is read once: of equal rows, and sums
/// over groups of these rows (group_rows). So do the second parts of sums that one region gives. On CUDA other regions
/// that read one value share a launch where no library call stands between them. What is cheap is computed again in
/// every consumer: constants, upcasts, and small values that are broadcast. A value used outside its region is stored
/// once; a view of a stored value that is used outside stays a view. Random and impure calls keep their order. With
/// `freeze`, what depends on state alone forms regions of its own.
PassResult fuse(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
