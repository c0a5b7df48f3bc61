#pragma once

#include <cstdint>

namespace sinter {

/// Counts of one compiled function since it was made or last reset.
struct Stats {
  int64_t calls = 0;     ///< that have ended: the sum of the four below
  int64_t replayed = 0;  ///< answered by compiled code
  int64_t recorded = 0;  ///< ran the callable and recorded it
  int64_t eager = 0;     ///< ran the callable as it is
  int64_t threw = 0;     ///< ended with an exception, whoever threw it

  int64_t entries = 0;         ///< segments compiled
  int64_t shapes = 0;          ///< plans made for further sizes without a recording
  int64_t breaks = 0;          ///< reasons found why calls run as eager runs them
  int64_t recompilations = 0;  ///< branches found
  double compile_seconds = 0;  ///< host time spent compiling what was recorded; without the callable's own run

  bool operator==(const Stats&) const = default;
};

}  // namespace sinter
