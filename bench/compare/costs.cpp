#include "bench/compare/costs.h"

#include <algorithm>
#include <cmath>

namespace sinter::bench {
namespace {

/// Calls of an entry are verified at powers of two; earlier ones are among those that were timed one by one.
constexpr double first_verification = 16;

/// Seconds that no clock tells apart: totals this close are equal.
constexpr double tie = 1e-9;

double timed_calls(const Row& row) { return 1 + static_cast<double>(row.later_calls_s.size()); }

/// What a verification adds to a steady call.
double extra(const Row& row) {
  return row.verification_s ? std::max(0.0, *row.verification_s - row.steady_ms / 1e3) : 0;
}

double verifications(const Row& row, double n) {
  const double from = std::max(first_verification, timed_calls(row) + 1);
  return n < from ? 0 : std::floor(std::log2(n)) - std::ceil(std::log2(from)) + 1;
}

/// Seconds by which eager is behind after `n` calls.
double ahead(const Row& row, double n) { return eager_total_seconds(row, n) - *total_seconds(row, n); }

}  // namespace

std::optional<double> total_seconds(const Row& row, double n) {
  if (!row.cold_s) return std::nullopt;
  double total = *row.cold_s;
  for (size_t i = 0; i < row.later_calls_s.size() && static_cast<double>(i) + 2 <= n; ++i)
    total += row.later_calls_s[i];
  const double steady = std::max(0.0, n - timed_calls(row)) * row.steady_ms / 1e3;
  return total + steady + verifications(row, n) * extra(row);
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
  // From here on the lead grows with every call but those that are verified, which come at ever larger distances.
  double from = timed_calls(row);
  double next = first_verification;
  while (next <= from) next *= 2;
  for (;; from = next, next *= 2) {
    const double lead = ahead(row, from);
    if (lead < -tie) behind = std::max(behind, std::min(next - 1, from + std::ceil((-lead - tie) / gain) - 1));
    if (lead >= -tie && extra(row) <= gain * (next - from) && from >= first_verification) break;
  }
  return behind + 1;
}

}  // namespace sinter::bench
