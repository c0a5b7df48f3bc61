#pragma once

#include <cuda.h>

#include <mutex>
#include <optional>

#include "runtime/cuda/driver.h"

namespace sinter::runtime {

/// The recorded graphs of one device replay one after another, whatever streams they are given to: they share the
/// workspaces that LibTorch's libraries keep for the stream they were recorded on.
class GraphTurn {
 public:
  /// That of a device of a driver; its primary context is current. Lives as long as the process.
  [[nodiscard]] static GraphTurn& of(const Driver& driver, int device);

  /// Held from `enter` to `leave`.
  [[nodiscard]] std::mutex& mutex() { return mutex_; }
  /// Makes work given to `stream` from now on wait for the turn before.
  void enter(CUstream stream);
  /// Ends a turn: the next one waits for what `stream` was given until now.
  void leave(CUstream stream);
  /// True where the work of the turns so far is done.
  [[nodiscard]] bool is_over();
  /// Waits on the host until the last turn's work is done. Ignores failures: at the end of the process the driver may
  /// be gone.
  void finish();

 private:
  explicit GraphTurn(const Driver& driver);

  const Driver& driver_;
  std::mutex mutex_;
  CUevent last_use_ = nullptr;
  std::optional<StreamId> last_stream_;  ///< none before the first turn
};

}  // namespace sinter::runtime
