#include "bench/compare/compile_costs.h"

#include <cmath>

namespace sinter::bench {

std::optional<double> pays_off_after(double compile_seconds, double eager_ms, double compiled_ms) {
  const double gain = (eager_ms - compiled_ms) / 1e3;
  if (!(gain > 0)) return std::nullopt;
  return std::ceil(compile_seconds / gain);
}

}  // namespace sinter::bench
