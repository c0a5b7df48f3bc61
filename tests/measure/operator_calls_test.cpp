#include "bench/measure/operator_calls.h"

#include <ATen/ops/add.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <vector>

namespace sinter::test {
namespace {

/// What watch_operator_calls said, in order; "end" for an end.
std::vector<std::string> watched(const std::function<void()>& call) {
  std::vector<std::string> events;
  bench::watch_operator_calls([&](std::string name) { events.push_back(std::move(name)); },
                              [&] { events.emplace_back("end"); }, call);
  return events;
}

TEST(OperatorCalls, each_is_seen_once_with_its_overload_in_order) {
  const at::Tensor x = at::ones({2, 2});
  EXPECT_EQ(watched([&] { (void)at::add(at::mm(x, x), 1); }),
            (std::vector<std::string>{"aten::mm", "end", "aten::add.Scalar", "end"}));
}

TEST(OperatorCalls, what_an_operator_calls_is_part_of_it) {
  const at::Tensor x = at::ones({2, 2});
  EXPECT_EQ(watched([&] { (void)at::linear(x, x); }), (std::vector<std::string>{"aten::linear", "end"}));
}

TEST(OperatorCalls, begin_and_end_stay_in_balance_where_an_operator_throws) {
  const at::Tensor x = at::ones({2, 3});
  std::vector<std::string> events;
  EXPECT_ANY_THROW(bench::watch_operator_calls([&](std::string name) { events.push_back(std::move(name)); },
                                               [&] { events.emplace_back("end"); }, [&] { (void)at::mm(x, x); }));
  EXPECT_EQ(events, (std::vector<std::string>{"aten::mm", "end"}));
  EXPECT_EQ(watched([&] { (void)at::mm(at::ones({1, 1}), at::ones({1, 1})); }).back(), "end");
}

TEST(OperatorCalls, nothing_is_watched_afterwards) {
  std::vector<std::string> events;
  bench::watch_operator_calls([&](std::string name) { events.push_back(std::move(name)); }, [] {}, [] {});
  (void)at::ones({1});
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace sinter::test
