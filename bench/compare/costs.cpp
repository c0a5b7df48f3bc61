#include "bench/compare/costs.h"

#include <algorithm>
#include <cmath>

namespace sinter::bench {
namespace {

/// Seconds that no clock tells apart: totals this close are equal.
constexpr double tie = 1e-9;

double timed_calls(const Row& row) { return 1 + static_cast<double>(row.later_calls_s.size()); }

/// Seconds by which eager is behind after `n` calls.
double ahead(const Row& row, double n) { return eager_total_seconds(row, n) - *total_seconds(row, n); }

}  // namespace

std::optional<double> total_seconds(const Row& row, double n) {
  if (!row.cold_s) return std::nullopt;
  double total = *row.cold_s;
  for (size_t i = 0; i < row.later_calls_s.size() && static_cast<double>(i) + 2 <= n; ++i)
    total += row.later_calls_s[i];
  return total + std::max(0.0, n - timed_calls(row)) * row.steady_ms / 1e3;
}

double eager_total_seconds(const Row& row, double n) {
  const double steady = row.eager_ms / 1e3;
  return row.eager_cold_s.value_or(steady) + std::max(0.0, n - 1) * steady;
}

std::optional<double> break_even(const Row& row) {
  if (!row.cold_s || row.steady_ms >= row.eager_ms) return std::nullopt;
  const double gain = (row.eager_ms - row.steady_ms) / 1e3;
  double behind = 0;  // the last call after which eager is ahead
  for (double n = 1; n <= timed_calls(row); ++n) {
    if (ahead(row, n) < -tie) behind = n;
  }
  // From here on the lead grows with every call.
  const double from = timed_calls(row);
  const double lead = ahead(row, from);
  if (lead < -tie) behind = from + std::ceil((-lead - tie) / gain) - 1;
  return behind + 1;
}

}  // namespace sinter::bench
