#pragma once

#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"
#include "compiler/plan.h"
#include "compiler/support/report.h"

namespace sinter::passes {

/// One launch of a plan: the fused node it stands for, and which of its params (inputs, then outputs) share memory with
/// another param of the launch, element by element.
struct PlannedKernel {
  ir::NodeId node;
  std::vector<bool> in_place;
};

struct PlannedMemory {
  Plan plan;  ///< complete but for `kernels`, which stay empty; Launch::kernel is an index into `kernels` below
  std::vector<PlannedKernel> kernels;
  std::vector<SegmentOwner> owners;  ///< of the fullest moment of Plan::steps, the largest first
};

/// Gives every value a buffer and puts the steps in order. Needs: fused. The last pass: a graph goes in, a plan comes
/// out.
///
/// Results of kernels live in the arena, in the gaps that buffers alive at the same time leave, unless an output is
/// made of them (then they are fresh `output` buffers) or they can take over the memory of an argument that dies
/// there. Results of calls are released after their last use. An output keeps eager's aliasing: a view of an input is
/// a view of that input's memory, and two views of one value share it. Where an arena, which is there for the whole
/// call, would raise the peak above eager's and above what single buffers need, temporaries are allocated one by one.
/// With `freeze`, what depends on state alone goes to Plan::once.
[[nodiscard]] PlannedMemory plan_memory(const ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
