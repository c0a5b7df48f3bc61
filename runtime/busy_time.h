#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinter::runtime {

/// When a kernel or a copy ran on a stream, in nanoseconds.
struct Interval {
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t stream = 0;
};

/// Microseconds of each interval after the one that ended before it on its stream. Kernels of a stream end in the order
/// in which they start, so the sum is the time that the stream was busy. A kernel that is launched while the one before
/// it still runs (programmatic dependent launch) starts by waiting for that one: the wait is the other's time.
[[nodiscard]] std::vector<double> busy_microseconds(std::span<const Interval> intervals);

}  // namespace sinter::runtime
