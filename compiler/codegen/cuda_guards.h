#pragma once

#include <cstdint>
#include <vector>

#include "compiler/codegen/cuda_access.h"
#include "compiler/kernel/kernel.h"

/// Loads under guards, a vector at a time.
namespace sinter::codegen {

/// What an instruction asks about where a point lies; nullptr for one that asks nothing.
[[nodiscard]] const ir::Index* asked_index(const kernel::Instruction& instruction);
/// Of every question, what it asks about.
[[nodiscard]] std::vector<const ir::Index*> questions(const kernel::Kernel& kernel);

/// By slot: true for a guard (an `Inside`, or a conjunction of guards) whose answer is one for all lanes of every
/// vector. `across`: lanes may cross rows.
[[nodiscard]] std::vector<bool> shared_guards(const kernel::Kernel& kernel, int64_t width, bool across);

/// How a load that `access` would do reaches memory under its guard: lane by lane where lanes disagree.
[[nodiscard]] LaneAccess under_guard(const kernel::Load& load, const LaneAccess& access,
                                     const std::vector<bool>& shared);

/// The widest vectors up to `width` whose lanes share every guard; `width` itself where no vectors do.
[[nodiscard]] int64_t width_of_guards(const kernel::Kernel& kernel, int64_t width);

}  // namespace sinter::codegen
