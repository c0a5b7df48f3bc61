#pragma once

#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <optional>

#include "frontend/torch/modes.h"

namespace sinter::frontend {

/// What besides its arguments decides what a kernel does, and where: LibTorch's settings, and the current stream of the
/// current CUDA device.
struct KernelSurroundings {
  Modes settings;
  std::optional<c10::Stream> stream;  ///< none without CUDA

  [[nodiscard]] static KernelSurroundings current();
  bool operator==(const KernelSurroundings&) const = default;
  /// True while these are the current ones, as far as they decide what a kernel does that looks at these settings.
  [[nodiscard]] bool are_current(SettingSet looked_at) const;
};

/// Makes the stream and the device of these surroundings current, and, where they matter to the work, their settings:
/// the program may have switched them behind the operators whose work is done now. At the end the stream that was
/// current waits for the work: the program has put what comes next behind it already, by an event that was recorded
/// before the work was launched.
class SurroundingsGuard {
 public:
  SurroundingsGuard(const KernelSurroundings& surroundings, bool settings_matter);
  ~SurroundingsGuard();
  SurroundingsGuard(const SurroundingsGuard&) = delete;
  SurroundingsGuard& operator=(const SurroundingsGuard&) = delete;

 private:
  std::optional<Modes> settings_;              ///< to return to
  std::optional<c10::Stream> work_, waiting_;  ///< where they differ
  c10::OptionalStreamGuard stream_;
};

}  // namespace sinter::frontend
