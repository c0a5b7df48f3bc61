#include "frontend/report/counters.h"

namespace sinter::frontend {

Stats Counters::read() const {
  const auto value = [](const std::atomic<int64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  Stats stats{.calls = 0,
              .replayed = value(replayed),
              .recorded = value(recorded),
              .eager = value(eager),
              .threw = value(threw),
              .entries = value(entries),
              .shapes = value(shapes),
              .breaks = value(breaks),
              .recompilations = value(recompilations),
              .compile_seconds = 1e-9 * static_cast<double>(value(compile_nanoseconds))};
  stats.calls = stats.replayed + stats.recorded + stats.eager + stats.threw;
  return stats;
}

}  // namespace sinter::frontend
