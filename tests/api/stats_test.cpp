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

TEST_F(StatsOf, a_function_that_was_not_called_has_counted_nothing) {
  EXPECT_EQ(compile(erf_gelu, trusted()).stats(), Stats{});
}

TEST_F(StatsOf, every_call_counts_once_by_how_it_was_answered) {
  auto fast = compile(erf_gelu, trusted());
  for (int call = 0; call < 9; ++call) fast(at::ones({8}));
  const auto stats = fast.stats();
  EXPECT_EQ(stats.calls, 9);
  EXPECT_EQ(stats.recorded, 4) << "calls 1, 2, 4 and 8";
  EXPECT_EQ(stats.replayed, 5);
  EXPECT_EQ(stats.eager, 0);
  EXPECT_EQ(stats.entries, 1);
  EXPECT_EQ(stats.breaks, 0);
  EXPECT_EQ(stats.recompilations, 0);
  EXPECT_GT(stats.compile_seconds, 0);
}

TEST_F(StatsOf, replays_agree_with_the_report) {
  auto fast = compile(erf_gelu, trusted({.dynamic = false}));
  for (int call = 0; call < 40; ++call) fast(at::ones({4 + call % 3}));
  EXPECT_EQ(fast.stats().replayed, replays(fast.report()));
  EXPECT_EQ(fast.stats().entries, 3);
  EXPECT_EQ(fast.stats().recompilations, 2);
}

TEST_F(StatsOf, replays_compile_nothing) {
  auto fast = compile(erf_gelu, trusted({.verify = Verify::off}));
  fast(at::ones({8}));
  const auto before = fast.stats().compile_seconds;
  for (int call = 0; call < 100; ++call) fast(at::ones({8}));
  EXPECT_EQ(fast.stats().compile_seconds, before);
}

TEST_F(StatsOf, shapes_that_got_a_plan_without_a_recording_are_counted) {
  auto fast = compile(erf_gelu, trusted({.verify = Verify::off, .dynamic = true}));
  for (const int64_t size : {64, 72, 80, 88}) fast(at::ones({size}));
  const auto stats = fast.stats();
  EXPECT_EQ(stats.recorded, 2);
  EXPECT_EQ(stats.shapes, 2);
  EXPECT_EQ(stats.replayed, 2);
  EXPECT_EQ(stats.recompilations, 1);
}

TEST_F(StatsOf, calls_of_a_program_that_breaks_are_eager_and_the_break_counts_once) {
  auto fast = compile([](const at::Tensor& x) { return x.clone().unfold(0, 2, 1).mul_(0.5); }, trusted());
  for (int call = 0; call < 5; ++call) fast(at::ones({8}));
  const auto stats = fast.stats();
  EXPECT_EQ(stats.recorded, 1);
  EXPECT_EQ(stats.eager, 4);
  EXPECT_EQ(stats.breaks, 1);
}

TEST_F(StatsOf, arguments_that_cannot_be_described_count_as_one_break_a_type) {
  struct Settings {
    double factor = 2;
  };
  auto fast = compile([](const at::Tensor& x, const Settings& settings) { return x * settings.factor; }, trusted());
  for (int call = 0; call < 3; ++call) fast(at::ones({8}), Settings{});
  EXPECT_EQ(fast.stats().eager, 3);
  EXPECT_EQ(fast.stats().breaks, 1);
}

TEST_F(StatsOf, calls_that_throw_are_counted_wherever_they_threw) {
  auto fast = compile(
      [](const at::Tensor& x, const at::Tensor& index) {
        if (x.size(0) == 0) throw std::runtime_error("empty");
        return x.index_select(0, index);
      },
      trusted());
  const auto good = at::zeros({2}, at::kLong);
  EXPECT_THROW(fast(at::ones({0}), good), std::runtime_error);         // recorded
  for (int call = 0; call < 3; ++call) fast(at::ones({8}), good);      // two recorded, one replayed
  EXPECT_ANY_THROW(fast(at::ones({8}), at::full({2}, 9, at::kLong)));  // the fourth call: recorded
  EXPECT_ANY_THROW(fast(at::ones({8}), at::full({2}, 9, at::kLong)));  // a replay
  const auto stats = fast.stats();
  EXPECT_EQ(stats.calls, 6);
  EXPECT_EQ(stats.threw, 3);
  EXPECT_EQ(sum(stats), 6);

  auto refused =
      compile([](const at::Tensor& x) { return x.clone().unfold(0, 2, 1).mul_(0.5); }, trusted({.fullgraph = true}));
  EXPECT_THROW(refused(at::ones({8})), UserError);
  EXPECT_THROW(refused(at::ones({8})), UserError);
  EXPECT_EQ(refused.stats().threw, 2);
  EXPECT_EQ(refused.stats().breaks, 1);
}

TEST_F(StatsOf, calls_inside_of_a_recording_count_as_eager) {
  auto inner = compile(erf_gelu, trusted());
  auto outer = compile([inner](const at::Tensor& x) { return inner(x) + 1; }, trusted({.verify = Verify::off}));
  for (int call = 0; call < 5; ++call) outer(at::ones({8}));
  EXPECT_EQ(inner.stats().eager, 1);
  EXPECT_EQ(inner.stats().calls, 1);
}

TEST_F(StatsOf, no_call_is_lost_or_counted_twice_while_threads_call_and_read) {
  auto fast = compile(erf_gelu, trusted());
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
  EXPECT_EQ(fast.stats().replayed, replays(fast.report()));
}

}  // namespace
}  // namespace sinter::test
