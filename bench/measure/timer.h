#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace sinter::bench {

/// Milliseconds of one call: median and quartiles over many samples.
struct Timing {
  double median = 0;
  double first_quartile = 0;
  double third_quartile = 0;
  int64_t samples = 0;
};

/// Runs call(i) for i = 0, 1, ...; the callee picks the i-th input set.
using Call = std::function<void(int64_t)>;

/// Waits until all work on the device is done. Does nothing for the CPU.
void synchronize(at::Device device);

/// One call, from its start until the device is idle, in seconds.
[[nodiscard]] double seconds_of(at::Device device, const std::function<void()>& call);

/// Back-to-back calls: on a GPU, CUDA events around groups of calls long enough for the clock; on the CPU, a monotonic
/// clock around each call. About `budget` seconds, after a warm-up.
[[nodiscard]] Timing steady(at::Device device, const Call& call, double budget = 1.0);

/// Each call waited for, by a monotonic clock.
[[nodiscard]] Timing latency(at::Device device, const Call& call, double budget = 0.5);

/// What a monotonic clock around a call that is not waited for would claim. Wrong on a GPU; kept to show by how much.
[[nodiscard]] Timing unsynchronised(at::Device device, const Call& call);

}  // namespace sinter::bench
