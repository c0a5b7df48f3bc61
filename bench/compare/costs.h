#pragma once

#include <optional>

#include "bench/compare/results.h"

/// What calls cost from the start of a process on, the first ones included.
namespace sinter::bench {

/// Seconds that the first `n` calls take: those that were timed one by one as they were, later ones as in steady state.
/// Nothing where no cold start was measured.
[[nodiscard]] std::optional<double> total_seconds(const Row& row, double n);

/// The same for eager, as measured beside `row`.
[[nodiscard]] double eager_total_seconds(const Row& row, double n);

/// The number of calls from which on the row has never taken longer than eager, all its first calls counted: 1
/// where it never has. Nothing where that is never, or no cold start was measured.
[[nodiscard]] std::optional<double> break_even(const Row& row);

}  // namespace sinter::bench
