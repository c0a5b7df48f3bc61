#include "runtime/busy_time.h"

#include <gtest/gtest.h>

namespace sinter::test {
namespace {

using runtime::busy_microseconds;
using runtime::Interval;
using Times = std::vector<double>;

TEST(BusyTime, of_kernels_one_after_another_is_how_long_they_ran) {
  const Interval intervals[] = {{1000, 3000, 7}, {3500, 4000, 7}};
  EXPECT_EQ(busy_microseconds(intervals), Times({2, 0.5}));
}

TEST(BusyTime, of_a_kernel_that_waited_for_the_one_before_it_begins_when_that_ended) {
  const Interval intervals[] = {{1000, 9000, 7}, {2000, 10000, 7}, {9500, 12000, 7}};
  EXPECT_EQ(busy_microseconds(intervals), Times({8, 1, 2}));
}

TEST(BusyTime, of_streams_is_counted_apart) {
  const Interval intervals[] = {{1000, 9000, 7}, {2000, 10000, 8}};
  EXPECT_EQ(busy_microseconds(intervals), Times({8, 8}));
}

}  // namespace
}  // namespace sinter::test
