#include <atomic>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "api_test.h"

// Options::on_event.
namespace sinter::test {
namespace {

/// Collects what a function tells.
class Events : public Api {
 protected:
  [[nodiscard]] Options keeping(Options options = {}) {
    options.name = "f";
    options.on_event = [this](const Event& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    };
    return options;
  }
  [[nodiscard]] std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const auto& event : events_) texts.push_back(event.text());
    return texts;
  }
  [[nodiscard]] size_t recompilations() const {
    return static_cast<size_t>(std::count_if(events_.begin(), events_.end(), [](const Event& event) {
      return std::holds_alternative<Recompilation>(event.what);
    }));
  }

  static at::Tensor broken(const at::Tensor& x) { return x.clone().unfold(0, 2, 1).mul_(0.5); }

  std::mutex mutex_;
  std::vector<Event> events_;
};

TEST_F(Events, a_first_compilation_and_replays_tell_nothing) {
  auto fast = compile(erf_gelu, trusted(keeping()));
  for (int call = 0; call < 9; ++call) fast(at::ones({8}));
  EXPECT_TRUE(events_.empty());
}

TEST_F(Events, a_recompilation_names_the_guard_that_failed) {
  auto fast = compile(erf_gelu, trusted(keeping()));
  fast(at::ones({8, 3}));
  fast(at::ones({8, 3}, at::kDouble));
  fast(at::ones({8, 3}, at::kDouble));
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(events_[0].function, "f");
  EXPECT_EQ(events_[0].signature, "f64[8,3]");
  const auto& because = std::get<Recompilation>(events_[0].what).because;
  ASSERT_EQ(because.size(), 1);
  EXPECT_EQ(because[0].guard, "input 0: dtype");
  EXPECT_EQ(because[0].was, "f32");
  EXPECT_EQ(because[0].is, "f64");
  EXPECT_EQ(texts()[0], "f  f64[8,3]  recompiled: input 0: dtype was f32, is f64");
}

TEST_F(Events, another_number_read_by_the_host_is_a_recompilation_that_names_the_read) {
  auto fast =
      compile([](const at::Tensor& x) { return (x.sum() > 0).item<bool>() ? x + 1 : x - 1; }, trusted(keeping()));
  fast(at::ones({4}));
  EXPECT_TRUE(events_.empty());
  for (int call = 0; call < 3; ++call) fast(-at::ones({4}));
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(texts()[0], "f  f32[4]  recompiled: host read 0: aten::_local_scalar_dense was true, is false");
}

TEST_F(Events, a_limit_of_paths_is_one_break) {
  auto options = keeping();
  options.max_paths = 2;
  auto fast = compile([](const at::Tensor& x) { return x.sum().item<float>() > 4 ? x + 1 : x - 1; }, trusted(options));
  for (int call = 0; call < 12; ++call) fast(at::full({5}, call % 4));
  ASSERT_FALSE(events_.empty());
  EXPECT_EQ(std::get<GraphBreak>(events_.back().what).code, BreakCode::host_read);
  const auto told = std::count_if(events_.begin(), events_.end(),
                                  [](const Event& event) { return std::holds_alternative<GraphBreak>(event.what); });
  EXPECT_EQ(told, 1);
}

TEST_F(Events, a_break_tells_once_what_the_report_tells) {
  auto fast = compile(broken, trusted(keeping()));
  for (int call = 0; call < 5; ++call) fast(at::ones({8}));
  ASSERT_EQ(events_.size(), 1);
  const auto& told = std::get<GraphBreak>(events_[0].what);
  const auto reported = only_break(fast.report());
  EXPECT_EQ(told.code, reported.code);
  EXPECT_EQ(told.reason, reported.reason);
  EXPECT_EQ(told.hint, reported.hint);
  EXPECT_EQ(texts()[0].find("f  f32[8]  break: unsupported-op aten::mul_"), 0) << texts()[0];
}

TEST_F(Events, a_break_that_fullgraph_throws_is_told_too) {
  auto fast = compile(broken, trusted(keeping({.fullgraph = true})));
  EXPECT_THROW(fast(at::ones({8})), UserError);
  EXPECT_EQ(events_.size(), 1);
}

TEST_F(Events, a_program_that_does_not_repeat_itself_is_told_when_it_is_found) {
  int steps = 0;
  auto fast = compile([&](const at::Tensor& x) { return x * ++steps; }, trusted(keeping()));
  for (int call = 0; call < 6; ++call) fast(at::ones({8}));
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(std::get<GraphBreak>(events_[0].what).code, BreakCode::unstable);
}

TEST_F(Events, an_argument_of_an_unknown_type_is_told_once) {
  struct Settings {};
  auto fast = compile([](const at::Tensor& x, const Settings&) { return x + 1; }, trusted(keeping()));
  for (int call = 0; call < 3; ++call) fast(at::ones({8}), Settings{});
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(std::get<GraphBreak>(events_[0].what).code, BreakCode::unsupported_input);
}

TEST_F(Events, the_limit_of_entries_is_told_once) {
  auto fast = compile([](const at::Tensor& x, int64_t n) { return x + n; }, trusted(keeping()));
  for (int64_t n = 0; n < 20; ++n) fast(at::ones({8}), n);
  EXPECT_EQ(recompilations(), 15);
  ASSERT_EQ(events_.size(), 16);
  ASSERT_TRUE(std::holds_alternative<LimitReached>(events_.back().what));
  EXPECT_EQ(texts().back(), "f  limit: 16 combinations of guards are compiled; others run eagerly");
}

TEST_F(Events, the_callback_runs_on_the_calls_thread_after_its_work_and_is_not_recorded) {
  std::vector<std::thread::id> threads;
  int watched = 0;
  at::Tensor kept;
  Options options = trusted();
  options.on_event = [&](const Event&) {
    threads.push_back(std::this_thread::get_id());
    watched += detail::watches_host() ? 1 : 0;
    kept = at::ones({8}) * 3;  // an operator that a recording would see, and a tensor that outlives it
  };
  auto fast = compile(erf_gelu, trusted(options));
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf}) {
    for (int call = 0; call < 4; ++call) {
      const auto x = at::randn({8}).to(dtype);
      EXPECT_TRUE(same(fast(x), erf_gelu(x)));
    }
  }
  EXPECT_EQ(threads, std::vector<std::thread::id>(2, std::this_thread::get_id()));
  EXPECT_EQ(watched, 0);
  EXPECT_TRUE(unbroken(fast.report())) << fast.report();
}

TEST_F(Events, a_callback_that_calls_the_function_again_is_answered) {
  std::optional<Compiled<at::Tensor (*)(const at::Tensor&)>> fast;
  int depth = 0;
  int deepest = 0;
  const std::vector<at::ScalarType> dtypes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
  Options options = trusted();
  options.on_event = [&](const Event&) {
    ++depth;
    deepest = std::max(deepest, depth);
    const auto x = at::ones({8}).to(dtypes.at(static_cast<size_t>(std::min(depth + 1, 3))));
    EXPECT_TRUE(same((*fast)(x), erf_gelu(x)));
    --depth;
  };
  fast.emplace(&erf_gelu, options);
  for (int call = 0; call < 3; ++call) {
    for (const auto dtype : dtypes) {
      const auto x = at::randn({8}).to(dtype);
      EXPECT_TRUE(same((*fast)(x), erf_gelu(x)));
    }
  }
  EXPECT_EQ(deepest, 3) << "calls of the callback made entries, and told them";
  EXPECT_EQ(fast->stats().entries, 4);
  EXPECT_TRUE(unbroken(fast->report()));
}

TEST_F(Events, a_callback_may_look_and_reset) {
  std::optional<Compiled<at::Tensor (*)(const at::Tensor&)>> fast;
  std::vector<size_t> entries;
  Options options = trusted();
  options.on_event = [&](const Event&) {
    entries.push_back(fast->report().entries.size());
    EXPECT_EQ(fast->stats().entries, 2);
    fast->reset();
    EXPECT_EQ(fast->stats().entries, 0);
  };
  fast.emplace(&erf_gelu, options);
  for (int round = 0; round < 3; ++round) {
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      const auto x = at::randn({8}).to(dtype);
      EXPECT_TRUE(same((*fast)(x), erf_gelu(x)));
    }
  }
  EXPECT_EQ(entries, (std::vector<size_t>{2, 2, 2}));
}

TEST_F(Events, a_callback_may_destroy_the_function_that_calls_it) {
  std::optional<Compiled<at::Tensor (*)(const at::Tensor&)>> fast;
  Options options = trusted();
  options.on_event = [&](const Event&) { fast.reset(); };
  fast.emplace(&erf_gelu, options);
  const auto x = at::randn({8});
  (*fast)(x);
  EXPECT_TRUE(same((*fast)(x.to(at::kDouble)), erf_gelu(x.to(at::kDouble))));
  EXPECT_FALSE(fast.has_value());
}

TEST_F(Events, an_exception_of_the_callback_does_not_reach_the_caller_and_is_noted_once) {
  int told = 0;
  Options options = trusted();
  options.on_event = [&](const Event&) {
    if (++told % 2 == 0) throw 7;  // NOLINT: anything may be thrown
    throw std::runtime_error("no log");
  };
  options.strict = true;
  auto fast = compile(erf_gelu, trusted(options));
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf}) {
    const auto x = at::randn({8}).to(dtype);
    EXPECT_TRUE(same(fast(x), erf_gelu(x)));
  }
  EXPECT_EQ(told, 2);
  EXPECT_EQ(fast.report().notes, std::vector<std::string>{"on_event threw: no log"});
  EXPECT_EQ(fast.stats().threw, 0);
}

TEST_F(Events, an_exception_of_the_callback_does_not_hide_the_calls_own) {
  Options options = trusted({.fullgraph = true});
  options.on_event = [](const Event&) { throw std::runtime_error("no log"); };
  auto fast = compile(broken, trusted(options));
  EXPECT_THROW(fast(at::ones({8})), UserError);
  EXPECT_EQ(fast.report().notes, std::vector<std::string>{"on_event threw: no log"});
}

TEST_F(Events, a_call_inside_of_another_functions_recording_tells_nothing) {
  auto inner = compile(broken, trusted(keeping()));
  auto outer = compile([inner](const at::Tensor& x) { return inner(x) + 1; }, trusted());
  for (int call = 0; call < 3; ++call) outer(at::ones({8}));
  EXPECT_FALSE(outer.report().entries.at(0).compiled);
  EXPECT_EQ(events_.size(), 1) << "the second call of the outer one is eager, and calls the inner one";
}

TEST_F(Events, threads_are_each_told_of_their_own_calls) {
  std::mutex mutex;
  std::vector<std::pair<std::thread::id, std::string>> told;
  Options options = trusted();
  options.on_event = [&](const Event& event) {
    const std::lock_guard lock(mutex);
    told.emplace_back(std::this_thread::get_id(), event.text());
  };
  auto fast = compile([](const at::Tensor& x, int64_t n) { return x + n; }, trusted(options));
  std::vector<std::thread> threads;
  for (int64_t index = 0; index < 4; ++index) {
    threads.emplace_back([&, index] {
      const c10::NoGradGuard no_grad;
      for (int call = 0; call < 50; ++call) EXPECT_TRUE(same(fast(at::ones({4}), index), at::ones({4}) + index));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(static_cast<int64_t>(told.size()), fast.stats().recompilations);
  EXPECT_EQ(fast.stats().entries, 1 + fast.stats().recompilations);
}

}  // namespace
}  // namespace sinter::test
