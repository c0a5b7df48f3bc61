#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/profile/step_shares.h"
#include "runtime/activity.h"
#include "sinter/profile.h"

namespace sinter::frontend {

/// The caller of what the profile itself asks of a device.
inline constexpr uint64_t profiles_own_caller = ~uint64_t{0};

/// Puts what a GPU did into a profile: kernels, copies and fills, each operator's launches and time of the device, and
/// waits of the host. Callers of activities are positions of `profile.operators`. `steps` are those that were traced.
void add_device_work(const runtime::ActivityTrace& trace, uint64_t origin, ModeProfile& profile);

/// The timeline of traced steps, for step_shares. `steps` are of the trace's clock. The end of a step, where the
/// profile itself waits for the device, is a wait.
[[nodiscard]] StepTimeline timeline_of(const runtime::ActivityTrace& trace, std::vector<Span> steps);

}  // namespace sinter::frontend
