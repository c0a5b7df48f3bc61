#include "bench/compare/costs.h"

#include <gtest/gtest.h>

#include "rows.h"

namespace sinter::test {
namespace {

/// A row whose eager takes 4 ms and whose first calls are known; cold starts: 0.5 s, eager 0.2 s.
bench::Row timed(std::vector<double> first_calls, double steady_ms) {
  Json source = row("resnet50", "default", steady_ms);
  source["cold_s"] = first_calls.front();
  source["first_calls_s"] = std::move(first_calls);
  return bench::parse_results(document({source}), "file").front().rows.front();
}

TEST(Costs, calls_that_were_timed_one_by_one_count_as_they_were) {
  const bench::Row row = timed({0.5, 0.03, 0.02, 0.04}, 1.0);
  EXPECT_DOUBLE_EQ(bench::total_seconds(row, 1).value(), 0.5);
  EXPECT_DOUBLE_EQ(bench::total_seconds(row, 4).value(), 0.59);
  EXPECT_NEAR(bench::total_seconds(row, 14).value(), 0.59 + 10 * 0.001, 1e-12);
  EXPECT_NEAR(bench::eager_total_seconds(row, 3), 0.2 + 2 * 0.004, 1e-12);
}

/// What break_even says, found by looking at every call; totals a nanosecond apart are equal.
std::optional<double> counted(const bench::Row& row) {
  double behind = 0;
  for (double n = 1; n < 100000; ++n) {
    if (*bench::total_seconds(row, n) > bench::eager_total_seconds(row, n) + 1e-9) behind = n;
  }
  return behind + 1;
}

TEST(Costs, break_even_is_the_call_from_which_on_nothing_is_behind_eager) {
  for (const double steady_ms : {0.25, 1.0, 3.0}) {
    for (const double cold_s : {0.1, 0.2, 0.21, 0.5, 7.0}) {
      const bench::Row row = timed({cold_s, 0.03, 0.02, 0.004, 0.001, 0.001, 0.001, 0.01, 0.001}, steady_ms);
      EXPECT_EQ(row.break_even_calls, counted(row)) << steady_ms << " " << cold_s;
    }
  }
}

TEST(Costs, a_start_that_is_quicker_than_eagers_may_pay_at_once_and_one_that_never_gains_never_does) {
  EXPECT_EQ(timed({0.1, 0.001, 0.001, 0.001}, 1.0).break_even_calls, 1.0);
  EXPECT_EQ(timed({0.1, 0.001, 0.001, 0.001}, 4.5).break_even_calls, std::nullopt);
}

}  // namespace
}  // namespace sinter::test
