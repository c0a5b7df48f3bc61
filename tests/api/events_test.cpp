#include <atomic>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "api_test.h"

// Options::on_event: who is told what, when, and what the callback may do.
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
    return unlimited(std::move(options));
  }
  [[nodiscard]] std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const auto& event : events_) texts.push_back(event.text());
    return texts;
  }

  static at::Tensor broken(const at::Tensor& x) { return x.to_sparse().to_dense(); }

  std::mutex mutex_;
  std::vector<Event> events_;
};

TEST_F(Events, a_first_recording_and_replays_tell_nothing) {
  auto fast = compile(erf_gelu, keeping());
  for (int call = 0; call < 9; ++call) fast(at::ones({8}));
  EXPECT_TRUE(events_.empty());
}

TEST_F(Events, a_recompilation_names_what_differs) {
  auto fast = compile([](const at::Tensor& x) { return at::relu(x) + 1; }, keeping());
  fast(at::ones({8, 3}));
  fast(at::ones({8, 3}, at::kDouble));
  fast(at::ones({8, 3}, at::kDouble));
  ASSERT_EQ(events_.size(), 1);
  EXPECT_EQ(events_[0].function, "f");
  EXPECT_EQ(events_[0].signature, "f64[8,3]");
  const auto& because = std::get<Recompilation>(events_[0].what).because;
  ASSERT_EQ(because.size(), 1);
  EXPECT_EQ(because[0].guard, "operator 1, aten::relu");
  EXPECT_EQ(because[0].was, "f32[8,3]");
  EXPECT_EQ(because[0].is, "f64[8,3]");
  EXPECT_EQ(texts()[0], "f  f64[8,3]  recompiled: operator 1, aten::relu was f32[8,3], is f64[8,3]");
}

TEST_F(Events, another_course_behind_a_host_read_is_told_once_if_at_all) {
  auto fast = compile([](const at::Tensor& x) { return (x.sum() > 0).item<bool>() ? x + 1 : x - 1; }, keeping());
  fast(at::ones({4}));
  EXPECT_TRUE(events_.empty());
  for (int call = 0; call < 3; ++call) fast(-at::ones({4}));
  EXPECT_LE(events_.size(), 1);
  for (const auto& event : events_) EXPECT_TRUE(std::holds_alternative<Recompilation>(event.what));
}

TEST_F(Events, a_break_tells_once_what_the_report_tells) {
  auto fast = compile(broken, keeping());
  for (int call = 0; call < 5; ++call) fast(at::ones({8}));
  const auto reported = fast.report().entries.back().breaks;
  ASSERT_FALSE(reported.empty());
  ASSERT_EQ(events_.size(), reported.size());
  for (size_t i = 0; i < events_.size(); ++i) {
    const auto& told = std::get<GraphBreak>(events_[i].what);
    EXPECT_EQ(told.code, reported[i].code);
    EXPECT_EQ(told.reason, reported[i].reason);
    EXPECT_EQ(told.hint, reported[i].hint);
  }
  EXPECT_EQ(texts()[0].find("f  f32[8]  break: unsupported-op aten::_to_sparse"), 0) << texts()[0];
}

TEST_F(Events, a_break_that_fullgraph_throws_is_told_too) {
  auto fast = compile(broken, keeping({.fullgraph = true}));
  EXPECT_THROW(fast(at::ones({8})), UserError);
  EXPECT_EQ(events_.size(), 1);
}

TEST_F(Events, the_callback_runs_on_the_calls_thread_after_its_work_and_is_not_recorded) {
  std::vector<std::thread::id> threads;
  std::vector<float> sums;
  at::Tensor kept;
  Options options = unlimited();
  options.on_event = [&](const Event&) {
    threads.push_back(std::this_thread::get_id());
    kept = at::ones({8}) * 3;  // an operator that a recording would see, and a tensor that outlives it
    sums.push_back(*kept.sum().const_data_ptr<float>());
  };
  auto fast = compile(erf_gelu, options);
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf}) {
    for (int call = 0; call < 4; ++call) {
      const auto x = at::randn({8}).to(dtype);
      EXPECT_TRUE(same(fast(x), erf_gelu(x)));
    }
  }
  EXPECT_EQ(threads, std::vector<std::thread::id>(2, std::this_thread::get_id()));
  EXPECT_EQ(sums, std::vector<float>(2, 24));
  EXPECT_EQ(fast.stats().replayed, 9) << "what the callback does is no step";
  EXPECT_TRUE(unbroken(fast.report())) << fast.report();
}

TEST_F(Events, a_callback_that_calls_the_function_again_is_answered) {
  std::optional<Compiled<at::Tensor (*)(const at::Tensor&)>> fast;
  int depth = 0;
  int deepest = 0;
  const std::vector<at::ScalarType> dtypes = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
  Options options = unlimited();
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
  EXPECT_EQ(deepest, 3) << "calls of the callback were recorded, and told";
  EXPECT_EQ(fast->stats().entries, 4);
  EXPECT_TRUE(unbroken(fast->report()));
}

TEST_F(Events, a_callback_may_look_and_reset) {
  std::optional<Compiled<at::Tensor (*)(const at::Tensor&)>> fast;
  int told = 0;
  Options options = unlimited();
  options.on_event = [&](const Event&) {
    ++told;
    EXPECT_EQ(fast->report().entries.size(), 1);
    EXPECT_EQ(fast->stats().entries, 1);
    fast->reset();
    EXPECT_EQ(fast->stats().entries, 0);
  };
  fast.emplace(&erf_gelu, options);
  for (int round = 0; round < 3; ++round) {
    for (const auto dtype : {at::kFloat, at::kFloat, at::kDouble}) {
      const auto x = at::randn({8}).to(dtype);
      EXPECT_TRUE(same((*fast)(x), erf_gelu(x)));
    }
  }
  EXPECT_EQ(told, 3);
}

TEST_F(Events, a_callback_may_destroy_the_function_that_calls_it) {
  std::optional<Compiled<at::Tensor (*)(const at::Tensor&)>> fast;
  Options options = unlimited();
  options.on_event = [&](const Event&) { fast.reset(); };
  fast.emplace(&erf_gelu, options);
  const auto x = at::randn({8});
  (*fast)(x);
  EXPECT_TRUE(same((*fast)(x.to(at::kDouble)), erf_gelu(x.to(at::kDouble))));
  EXPECT_FALSE(fast.has_value());
}

int64_t notes_of_the_callback(const Report& report) {
  return std::ranges::count_if(report.notes,
                               [](const std::string& note) { return note.starts_with("on_event threw"); });
}

TEST_F(Events, an_exception_of_the_callback_does_not_reach_the_caller_and_is_noted_once) {
  int told = 0;
  Options options = unlimited({.strict = true});
  options.on_event = [&](const Event&) {
    if (++told % 2 == 0) throw 7;  // NOLINT: anything may be thrown
    throw std::runtime_error("no log");
  };
  auto fast = compile(erf_gelu, options);
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf}) {
    const auto x = at::randn({8}).to(dtype);
    EXPECT_TRUE(same(fast(x), erf_gelu(x)));
  }
  EXPECT_EQ(told, 2);
  EXPECT_EQ(notes_of_the_callback(fast.report()), 1);
  EXPECT_EQ(std::ranges::count(fast.report().notes, "on_event threw: no log"), 1);
  EXPECT_EQ(fast.stats().threw, 0);
}

TEST_F(Events, an_exception_of_the_callback_does_not_hide_the_calls_own) {
  Options options = unlimited({.fullgraph = true});
  options.on_event = [](const Event&) { throw std::runtime_error("no log"); };
  auto fast = compile(broken, options);
  EXPECT_THROW(fast(at::ones({8})), UserError);
  EXPECT_EQ(notes_of_the_callback(fast.report()), 1);
}

TEST_F(Events, a_call_inside_of_another_functions_call_is_told_by_that_one) {
  auto inner = compile(broken, keeping());
  int64_t told = 0;
  Options options = unlimited();
  options.on_event = [&](const Event&) { ++told; };
  auto outer = compile([inner](const at::Tensor& x) { return inner(x) + 1; }, options);
  for (int call = 0; call < 3; ++call) outer(at::ones({8}));
  EXPECT_TRUE(events_.empty());
  EXPECT_EQ(told, outer.stats().breaks);
  EXPECT_GE(told, 1);
}

TEST_F(Events, threads_are_each_told_of_their_own_calls) {
  std::mutex mutex;
  std::vector<std::pair<std::thread::id, std::string>> told;
  Options options = unlimited();
  options.on_event = [&](const Event& event) {
    const std::lock_guard lock(mutex);
    told.emplace_back(std::this_thread::get_id(), event.text());
  };
  auto fast = compile([](const at::Tensor& x, int64_t n) { return x.pow(n); }, options);
  std::vector<std::thread> threads;
  for (int64_t index = 0; index < 4; ++index) {
    threads.emplace_back([&, index] {
      const c10::NoGradGuard no_grad;
      for (int call = 0; call < 50; ++call)
        EXPECT_TRUE(same(fast(at::ones({4}) * 2, index), (at::ones({4}) * 2).pow(index)));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(static_cast<int64_t>(told.size()), fast.stats().recompilations);
}

}  // namespace
}  // namespace sinter::test
