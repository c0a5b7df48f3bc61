#pragma once

#include "frontend/profile/module_table.h"
#include "sinter/profile.h"

namespace sinter::frontend {

/// Gives kernels of replayed CUDA Graphs the operators of `direct`, a profile of the same program whose compiled
/// segments run step by step: kernels of equal names are matched in order. Each operator that a graph replays is added
/// behind the others, without time of the host; what has no partner stays the segment's. Modules of `direct` that the
/// table does not have are added to it.
void attribute_graphs(const ModeProfile& direct, ModuleTable& modules, ModeProfile& profile);

}  // namespace sinter::frontend
