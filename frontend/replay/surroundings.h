#pragma once

#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <optional>

#include "frontend/modes.h"

namespace sinter::frontend {

/// What besides its arguments decides what a kernel does, and where: LibTorch's settings, and the current stream of the
/// current CUDA device.
struct KernelSurroundings {
  Modes settings;
  std::optional<c10::Stream> stream;  ///< none without CUDA

  [[nodiscard]] static KernelSurroundings current();
  bool operator==(const KernelSurroundings&) const = default;
};

/// Makes the stream and the device of these surroundings current. Settings are as they are: work that they decide is
/// chosen when it is recorded.
class SurroundingsGuard {
 public:
  explicit SurroundingsGuard(const KernelSurroundings& surroundings) {
    if (surroundings.stream) stream_.reset_stream(*surroundings.stream);
  }

 private:
  c10::OptionalStreamGuard stream_;
};

}  // namespace sinter::frontend
