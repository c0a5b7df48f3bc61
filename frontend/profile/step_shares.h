#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sinter/profile.h"

namespace sinter::frontend {

/// From `begin` up to `end`, nanoseconds of one clock.
struct Span {
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// A kernel, copy or fill of a device.
struct LaunchedWork {
  Span ran;
  std::optional<size_t> launch;  ///< position in StepTimeline::launches of the call that asked for it; empty: not known
};

/// What happened while steps ran. Streams and threads are not told apart: the device is busy while any stream is.
struct StepTimeline {
  std::vector<Span> steps;         ///< in order, apart from each other
  std::vector<LaunchedWork> work;  ///< in any order
  std::vector<Span> launches;      ///< calls of the host that ask for work
  std::vector<Span> waits;         ///< calls of the host that wait for the device
};

/// What the time of the steps went to; nothing where they take none. Time outside of the steps does not count.
///
/// While the device is idle, the work that comes next says why. Its launch call had returned before, or had other work
/// that ran before: `between`. Its launch call was not over: `launch` from where that begins. Before that, and where no
/// work follows, it is what the host does then: a wait (`wait`), else any launch call (`launch`), else `host`.
[[nodiscard]] std::optional<StepShares> step_shares(const StepTimeline& timeline);

}  // namespace sinter::frontend
