#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <nlohmann/json.hpp>

/// What measuring asks of CUDA, besides kernel traces. bench/measure/cuda/ answers; where LibTorch was built without
/// CUDA, bench/measure/without_cuda/ does: no device is there to ask about, and every function throws InternalError.
namespace sinter::bench::cuda {

/// Adds the device and the versions of driver, runtime and cuDNN.
void describe(c10::DeviceIndex device, nlohmann::json& info);
void synchronize();
/// Bytes of the L2 cache.
[[nodiscard]] int64_t cache_bytes(c10::DeviceIndex device);
/// Bytes in use on the device by the driver's count, of all processes; makes the device's context, which is not
/// counted.
[[nodiscard]] int64_t taken_bytes(c10::DeviceIndex device);

/// The most bytes that LibTorch's allocator had handed out and had kept at one time.
struct AllocatorPeaks {
  int64_t allocated = 0;
  int64_t reserved = 0;
};
[[nodiscard]] AllocatorPeaks allocator_peaks(c10::DeviceIndex device);

/// A place in the current stream.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record();
  /// Milliseconds from `start` to this event; waits for it.
  [[nodiscard]] double since(const Event& start) const;

 private:
  void* event_ = nullptr;  ///< a cudaEvent_t
};

}  // namespace sinter::bench::cuda
