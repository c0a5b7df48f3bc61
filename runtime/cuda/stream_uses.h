#pragma once

#include <cuda.h>

#include <map>
#include <mutex>

#include "runtime/cuda/driver.h"

namespace sinter::runtime {

/// The streams that work on some memory, for whoever gives it back: an allocator orders its next user behind the
/// stream it was allocated on, and behind no other. Thread-safe.
class StreamUses {
 public:
  explicit StreamUses(const Driver& driver) : driver_(driver) {}
  StreamUses(const StreamUses&) = delete;
  StreamUses& operator=(const StreamUses&) = delete;
  ~StreamUses();

  /// What `stream` was given so far works on the memory. It must not be recorded, and may be destroyed later.
  void note(CUstream stream);
  /// Waits on the host until all of that is done. Ignores failures: at the end of the process the driver may be gone.
  void finish();

 private:
  void forget_finished();

  const Driver& driver_;
  std::mutex mutex_;
  std::map<StreamId, CUevent> last_;  ///< after the last use on each stream
};

}  // namespace sinter::runtime
