#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/emulator/machine.h"
#include "tests/emulator/warp.h"

namespace sinter::test {

/// Watches every access of a block's threads to its shared memory. Two accesses of different threads to one byte, of
/// which one writes, must be ordered by a __syncthreads, or by a __syncwarp whose mask names both threads' lanes (or a
/// chain of them). Shuffles and votes order no memory, as in CUDA. Atomics may meet each other. A byte that is read was
/// written by the same block.
class SharedMemory {
 public:
  explicit SharedMemory(unsigned threads);

  void watch(std::string name, const void* begin, size_t bytes);

  /// A new block runs in the same memory, and knows nothing of what is in it.
  void begin_block();
  void sync_block();
  void sync_warp(unsigned first_thread, unsigned mask);

  [[nodiscard]] bool watches(const void* address) const;

  /// What is wrong with an access; empty when nothing is, or when the memory is not watched.
  [[nodiscard]] std::string access(unsigned thread, const void* address, size_t bytes, Access access);

 private:
  struct Touch {
    unsigned thread;
    unsigned time;  ///< of the thread
    Access access;
  };
  struct Byte {
    unsigned written_in = 0;    ///< block
    unsigned phase = 0;         ///< the touches' own
    std::vector<Touch> writes;  ///< the last plain one and atomics since; what is ordered after it is ordered after all
    std::vector<Touch> reads;   ///< since that one
  };
  struct Region {
    std::string name;
    uintptr_t begin;
    std::vector<Byte> bytes;

    [[nodiscard]] bool holds(uintptr_t address) const { return address - begin < bytes.size(); }
  };
  /// What a thread knows of the time of each lane of its warp. Its own entry counts the warp barriers it has passed.
  using Clock = std::array<unsigned, lanes_per_warp>;

  [[nodiscard]] bool ordered(const Touch& before, unsigned thread) const;
  [[nodiscard]] const Touch* unordered(const std::vector<Touch>& touches, const Touch& now) const;
  [[nodiscard]] std::string fault_of(const Byte& byte, const Touch& now) const;
  void forget(Byte& byte) const;
  void remember(Byte& byte, const Touch& now) const;

  std::vector<Region> regions_;
  std::vector<Clock> clocks_;
  unsigned block_ = 0;
  unsigned phase_ = 0;  ///< counts barriers of all threads
};

}  // namespace sinter::test
