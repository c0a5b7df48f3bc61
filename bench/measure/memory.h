#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace sinter::bench {

/// What a process has taken of a device's memory.
struct MemoryUse {
  int64_t device_bytes = 0;     ///< by the driver's count (CPU: the system's), now: kernels, workspaces, graphs, all
  int64_t allocated_bytes = 0;  ///< that LibTorch's allocator had handed out at most at one time
  int64_t reserved_bytes = 0;   ///< that LibTorch's allocator had kept at most at one time; CPU: as handed out
};

/// Counts the memory that this process uses, from its construction on: make it before anything touches the device, and
/// in the thread that makes the calls (allocations of a CPU's other threads are not seen). Other processes must leave
/// the device alone meanwhile: the driver counts all. One at a time.
class MemoryMeter {
 public:
  explicit MemoryMeter(at::Device device);
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;
  ~MemoryMeter();

  /// What was used up to now. From here on nothing is counted, and nothing slows allocations down.
  [[nodiscard]] MemoryUse stop();

 private:
  class CpuAllocations;
  at::Device device_;
  int64_t before_;
  std::unique_ptr<CpuAllocations> cpu_;
};

/// Bytes of the cache a benchmark's inputs must not stay in: the GPU's L2, or the CPU's last level.
[[nodiscard]] int64_t cache_bytes(at::Device device);

}  // namespace sinter::bench
