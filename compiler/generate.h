#pragma once

#include "compiler/compile.h"
#include "compiler/ir/graph.h"
#include "compiler/passes/plan_memory.h"

namespace sinter {

/// Lowers every fused node of a planned graph, writes its text for the plan's back end and puts it into the plan; equal
/// texts stand there once. Returns the finished plan. Throws InternalError naming the kernel, with its body saved.
[[nodiscard]] Plan generate_kernels(const ir::Graph& graph, passes::PlannedMemory planned,
                                    const CompileOptions& options);

}  // namespace sinter
