#include "compiler/passes/plan_memory.h"

#include <algorithm>
#include <limits>

#include "compiler/passes/memory_planner.h"

namespace sinter::passes {

PlannedMemory plan_memory(const ir::Graph& graph, const PassContext& context) {
  MemoryPlanner with_arena(graph, context, Temporaries::arena);
  PlannedMemory planned = with_arena.run();
  if (planned.plan.arena_bytes == 0 || with_arena.peak_bytes() <= context.eager_peak_bytes) return planned;
  MemoryPlanner one_by_one(graph, context, Temporaries::single);
  PlannedMemory alternative = one_by_one.run();
  return with_arena.peak_bytes() <= one_by_one.peak_bytes() ? std::move(planned) : std::move(alternative);
}

}  // namespace sinter::passes
