#pragma once

#include <optional>

#include "frontend/capture.h"

namespace sinter::frontend {

/// Autocast's cache of cast weights during a recording. The cache holds a cast of a weight that requires gradients
/// until it is cleared, at the end of the outermost autocast scope; all uses of the weight share it, and their
/// gradients add up in the lower precision.
///
/// Where the program switches autocast on itself, with gradients, the cache works as in eager. Elsewhere it is off, as
/// it may hold casts from before the call and keep those of the call: every cast is recorded.
class AutocastCache {
 public:
  AutocastCache();
  ~AutocastCache();
  AutocastCache(const AutocastCache&) = delete;
  AutocastCache& operator=(const AutocastCache&) = delete;

  /// The break of a program whose gradients the cache would have changed.
  [[nodiscard]] std::optional<GraphBreak> break_of(const Trace& trace) const;

 private:
  bool was_enabled_;
  bool began_inside_;  ///< autocast was on when the call began, with gradients
};

}  // namespace sinter::frontend
