#include "compiler/passes/plan_memory.h"

#include <algorithm>
#include <limits>

#include "compiler/passes/memory_planner.h"

namespace sinter::passes {

namespace {

PlannedMemory with_owners(PlannedMemory planned, const MemoryPlanner& planner) {
  planned.owners = planner.owners();
  return planned;
}

}  // namespace

PlannedMemory plan_memory(const ir::Graph& graph, const PassContext& context) {
  MemoryPlanner with_arena(graph, context, Temporaries::arena);
  PlannedMemory planned = with_arena.run();
  if (planned.plan.arena_bytes == 0 || with_arena.peak_bytes() <= context.eager_peak_bytes) {
    return with_owners(std::move(planned), with_arena);
  }
  MemoryPlanner one_by_one(graph, context, Temporaries::single);
  PlannedMemory alternative = one_by_one.run();
  if (with_arena.peak_bytes() <= one_by_one.peak_bytes()) return with_owners(std::move(planned), with_arena);
  return with_owners(std::move(alternative), one_by_one);
}

}  // namespace sinter::passes
