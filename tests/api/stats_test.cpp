#include <atomic>
#include <stdexcept>
#include <thread>

#include "api_test.h"

// Compiled::stats().
namespace sinter::test {
namespace {

class StatsOf : public Api {
 protected:
  static int64_t sum(const Stats& stats) { return stats.replayed + stats.recorded + stats.eager + stats.threw; }
};

TEST_F(StatsOf, a_function_that_was_not_called_has_counted_nothing) { EXPECT_EQ(compile(erf_gelu).stats(), Stats{}); }

TEST_F(StatsOf, every_call_counts_once_by_how_it_was_answered) {
  auto fast = compile(erf_gelu, unlimited());
  for (int call = 0; call < 9; ++call) fast(at::ones({8}));
  const auto stats = fast.stats();
  EXPECT_EQ(stats.calls, 9);
  EXPECT_EQ(stats.recorded, 1);
  EXPECT_EQ(stats.replayed, 8);
  EXPECT_EQ(stats.eager, 0);
  EXPECT_EQ(stats.entries, 1);
  EXPECT_EQ(stats.breaks, 0);
  EXPECT_EQ(stats.recompilations, 0);
  EXPECT_GT(stats.compile_seconds, 0);
}

TEST_F(StatsOf, replays_agree_with_the_report) {
  auto fast = compile(erf_gelu, unlimited({.dynamic = false}));
  for (int call = 0; call < 40; ++call) fast(at::ones({4 + call % 3}));
  EXPECT_EQ(fast.stats().replayed, 37);
  EXPECT_EQ(fast.stats().replayed, replays(fast.report())) << "one segment a call";
  EXPECT_EQ(fast.stats().entries, 3);
  EXPECT_EQ(fast.stats().recompilations, 2);
}

TEST_F(StatsOf, replays_compile_nothing) {
  auto fast = compile(erf_gelu, unlimited());
  for (int call = 0; call < 2; ++call) fast(at::ones({8}));
  const auto before = fast.stats().compile_seconds;
  for (int call = 0; call < 100; ++call) fast(at::ones({8}));
  EXPECT_EQ(fast.stats().compile_seconds, before);
}

TEST_F(StatsOf, shapes_that_got_a_plan_without_a_recording_are_counted) {
  auto fast = compile(erf_gelu, unlimited({.dynamic = true}));
  for (const int64_t size : {64, 72, 80, 88}) fast(at::ones({size}));
  const auto stats = fast.stats();
  EXPECT_EQ(stats.recorded, 2);
  EXPECT_EQ(stats.shapes, 2);
  EXPECT_EQ(stats.replayed, 2);
  EXPECT_EQ(stats.recompilations, 1);
}

TEST_F(StatsOf, a_break_counts_once_and_what_lies_around_it_replays) {
  auto fast = compile([](const at::Tensor& x) { return (x * 2).to_sparse().to_dense() + 1; }, unlimited());
  for (int call = 0; call < 5; ++call) fast(at::ones({8}));
  const auto stats = fast.stats();
  EXPECT_EQ(stats.recorded, 1);
  EXPECT_EQ(stats.replayed, 4);
  EXPECT_EQ(stats.breaks, static_cast<int64_t>(fast.report().entries.back().breaks.size()));
}

TEST_F(StatsOf, calls_that_throw_are_counted_wherever_they_threw) {
  auto fast = compile(
      [](const at::Tensor& x, const at::Tensor& index) {
        if (x.size(0) == 0) throw std::runtime_error("empty");
        return x.index_select(0, index) * 2;
      },
      unlimited());
  const auto good = at::zeros({2}, at::kLong);
  EXPECT_THROW(fast(at::ones({0}), good), std::runtime_error);
  for (int call = 0; call < 3; ++call) fast(at::ones({8}), good);
  for (int call = 0; call < 2; ++call) EXPECT_ANY_THROW(fast(at::ones({8}), at::full({2}, 9, at::kLong)));
  const auto stats = fast.stats();
  EXPECT_EQ(stats.calls, 6);
  EXPECT_EQ(stats.threw, 3);
  EXPECT_EQ(sum(stats), 6);

  auto refused = compile([](const at::Tensor& x) { return x.to_sparse().to_dense(); }, unlimited({.fullgraph = true}));
  EXPECT_THROW(refused(at::ones({8})), UserError);
  EXPECT_THROW(refused(at::ones({8})), UserError);
  EXPECT_EQ(refused.stats().threw, 2);
  EXPECT_EQ(refused.stats().breaks, 1);
}

TEST_F(StatsOf, calls_inside_of_another_functions_calls_count_as_eager) {
  auto inner = compile(erf_gelu, unlimited());
  auto outer = compile([inner](const at::Tensor& x) { return inner(x) + 1; }, unlimited());
  for (int call = 0; call < 5; ++call) outer(at::ones({8}));
  EXPECT_EQ(inner.stats().eager, 5);
  EXPECT_EQ(inner.stats().calls, 5);
  EXPECT_EQ(outer.stats().replayed, 4);
}

TEST_F(StatsOf, no_call_is_lost_or_counted_twice_while_threads_call_and_read) {
  auto fast = compile(erf_gelu, unlimited());
  constexpr int threads = 4;
  constexpr int calls = 200;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    int64_t last = 0;
    while (!done) {
      const auto stats = fast.stats();
      EXPECT_EQ(stats.calls, sum(stats));
      EXPECT_GE(stats.calls, last);
      last = stats.calls;
    }
  });
  std::vector<std::thread> callers;
  for (int index = 0; index < threads; ++index) {
    callers.emplace_back([&, index] {
      const c10::NoGradGuard no_grad;
      for (int call = 0; call < calls; ++call) fast(at::ones({8 + (index + call) % 2}));
    });
  }
  for (auto& caller : callers) caller.join();
  done = true;
  reader.join();
  EXPECT_EQ(fast.stats().calls, threads * calls);
}

}  // namespace
}  // namespace sinter::test
