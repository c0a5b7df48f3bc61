#include <ATen/ops/dropout.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <functional>
#include <thread>

#include "where.h"

// Compiled::reset(). The programs with a device run on a GPU too.
namespace sinter::test {
namespace {

using Reset = Api;

/// Resets, whatever the type of the compiled object is.
struct Resetter {
  std::function<void()> reset = [] {};
};

TEST_F(Reset, the_next_call_is_recorded_anew) {
  auto fast = compile(erf_gelu, unlimited());
  const auto x = at::randn({8});
  for (int call = 0; call < 3; ++call) fast(x);
  EXPECT_EQ(fast.stats().replayed, 2);
  fast.reset();
  EXPECT_EQ(fast.stats(), Stats{});
  EXPECT_TRUE(fast.report().entries.empty());
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), erf_gelu(x)));
  EXPECT_EQ(fast.stats().recorded, 1);
  EXPECT_EQ(fast.stats().replayed, 2);
}

TEST_F(Reset, a_function_that_was_never_called_or_is_empty_again_may_be_reset) {
  auto fast = compile(erf_gelu, unlimited());
  fast.reset();
  fast.reset();
  EXPECT_TRUE(same(fast(at::ones({4})), erf_gelu(at::ones({4}))));
}

TEST_F(Reset, copies_are_reset_together) {
  auto fast = compile(erf_gelu, unlimited());
  auto copy = fast;
  for (int call = 0; call < 2; ++call) fast(at::ones({4}));
  EXPECT_EQ(fast.stats().entries, 1);
  copy.reset();
  EXPECT_EQ(fast.stats().entries, 0);
}

TEST_F(Reset, breaks_and_notes_are_forgotten_so_that_a_program_that_now_compiles_does) {
  bool looks = true;
  const auto program = [&](const at::Tensor& x) {
    const auto y = x * 2;
    return looks && *y.const_data_ptr<float>() < 0 ? y : y + 1;
  };
  auto fast = compile(program, unlimited());
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(same(fast(at::ones({4})), at::full({4}, 3.0)));
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::unsupported_op);
  EXPECT_GT(fast.stats().eager, 0);
  looks = false;
  fast.reset();
  for (int call = 0; call < 6; ++call) EXPECT_TRUE(same(fast(at::ones({4})), at::full({4}, 3.0)));
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 5);
}

TEST_F(Reset, what_was_learnt_of_sizes_is_forgotten) {
  auto fast = compile(erf_gelu, unlimited());
  for (const int64_t size : {64, 72, 80, 88}) fast(at::ones({size}));
  EXPECT_EQ(fast.stats().recorded, 2);
  EXPECT_EQ(fast.stats().shapes, 2);
  fast.reset();
  for (const int64_t size : {80, 88}) fast(at::ones({size}));
  EXPECT_EQ(fast.stats().recorded, 2) << "no family was left to make a plan from";
  EXPECT_EQ(fast.stats().shapes, 0);
}

TEST_F(Reset, what_was_computed_once_of_state_is_let_go) {
  auto weight = std::make_shared<at::Tensor>(at::randn({4}));
  auto fast = compile([weight](const at::Tensor& x) { return x * weight->exp(); }, unlimited({.freeze = true}));
  for (int call = 0; call < 3; ++call) fast(at::ones({4}));
  fast.reset();
  weight->fill_(3);  // promised not to happen before the reset
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(at::ones({4})), at::full({4}, 3.0).exp()));
}

TEST_F(Reset, the_callable_may_reset_while_it_is_recorded_or_replayed) {
  Resetter resetter;
  int runs = 0;
  const auto program = [&](const at::Tensor& x) {
    const auto y = x * 3;
    if (++runs % 4 == 0) resetter.reset();
    return erf_gelu(y);
  };
  auto fast = compile(program, unlimited());
  resetter.reset = [&] { fast.reset(); };
  for (int call = 0; call < 12; ++call) {
    const auto x = at::randn({8});
    EXPECT_TRUE(same(fast(x), erf_gelu(x * 3)));
  }
  EXPECT_EQ(runs, 12);
  EXPECT_LE(fast.stats().calls, 4) << "the call that resets is counted, if at all, before";
  EXPECT_EQ(fast.stats().breaks, 0) << fast.report();
}

TEST_F(Reset, a_recording_that_was_under_way_is_not_used_afterwards) {
  Resetter resetter;
  int runs = 0;
  auto fast = compile(
      [&](const at::Tensor& x) {
        if (++runs == 1) resetter.reset();
        return erf_gelu(x);
      },
      unlimited());
  resetter.reset = [&] { fast.reset(); };
  fast(at::ones({8}));
  EXPECT_EQ(fast.stats(), Stats{});
  fast(at::ones({8}));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(fast.stats().recorded, 1);
}

TEST_F(Reset, host_code_may_reset_between_the_segments_of_a_replay) {
  Resetter resetter;
  int effects = 0;
  auto fast = compile(
      [&](const at::Tensor& x) {
        const auto y = x * 3 + 1;
        EXPECT_TRUE(y.isfinite().all().item<bool>());
        ++effects;
        resetter.reset();
        return std::pair<at::Tensor, std::string>(y.relu() * 2, "a text that is read after the plan is gone");
      },
      unlimited());
  const auto expected = [](const at::Tensor& x) { return at::relu(x * 3 + 1) * 2; };
  for (int round = 0; round < 3; ++round) {
    resetter.reset = [] {};
    for (int call = 0; call < 3; ++call) fast(at::ones({4}));
    EXPECT_EQ(fast.stats().replayed, 2) << fast.report();
    resetter.reset = [&] { fast.reset(); };
    const auto x = at::randn({4});
    const auto [y, text] = fast(x);
    EXPECT_TRUE(same(y, expected(x)));
    EXPECT_EQ(text, "a text that is read after the plan is gone");
    EXPECT_EQ(fast.stats().entries, 0);
  }
  EXPECT_EQ(effects, 12) << "once a call, resets or not";
}

TEST_F(Reset, from_another_thread_while_calls_run_every_result_is_right) {
  ConvBnRelu model;
  model->eval();
  auto fast = compile(
      [model](const at::Tensor& x) mutable { return std::pair<at::Tensor, std::string>(model->forward(x), "result"); },
      unlimited());
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int index = 0; index < 3; ++index) {
    callers.emplace_back([&, index] {
      const c10::NoGradGuard no_grad;
      for (int call = 0; call < 60; ++call) {
        const auto x = at::randn({1 + (index + call) % 3, 3, 8, 8});
        const auto [y, text] = fast(x);
        if (!same(y, model->forward(x)) || text != "result") ++wrong;
      }
    });
  }
  std::thread resets([&] {
    while (!done) {
      fast.reset();
      std::this_thread::yield();
    }
  });
  for (auto& caller : callers) caller.join();
  done = true;
  resets.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(fast.stats().breaks, 0) << fast.report();
}

constexpr Where kPlaces[] = {{"cpu", at::kCPU, Mode::Default},
                             {"cuda_default", at::kCUDA, Mode::Default},
                             {"cuda_reduce_overhead", at::kCUDA, Mode::ReduceOverhead}};

class ResetOn : public OnDevice {
 private:
  c10::NoGradGuard no_grad_;
};
INSTANTIATE_TEST_SUITE_P(Places, ResetOn, ::testing::ValuesIn(kPlaces), name_of);

TEST_P(ResetOn, results_of_calls_before_it_stay_and_work_that_is_under_way_ends) {
  const at::TensorOptions options(GetParam().device);
  torch::nn::Linear layer(64, 64);
  layer->to(GetParam().device);
  auto fast = compile([&](const at::Tensor& x) { return erf_gelu(layer->forward(x)) + x; },
                      unlimited({.mode = GetParam().mode}));
  std::vector<at::Tensor> inputs, results;
  for (int round = 0; round < 5; ++round) {
    for (int call = 0; call < 4; ++call) {
      inputs.push_back(at::randn({128, 64}, options));
      results.push_back(fast(inputs.back()));
    }
    fast.reset();                                      // not waited for: a GPU is still at it
    const auto noise = at::randn({512, 64}, options);  // would take memory that was given back too early
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(same(results[i], erf_gelu(layer->forward(inputs[i])) + inputs[i], 1e-4)) << "call " << i;
  }
}

TEST_P(ResetOn, random_numbers_go_on_where_they_were) {
  const at::TensorOptions options(GetParam().device);
  const auto program = [](const at::Tensor& x) { return at::dropout(x, 0.5, true) + 1; };
  const auto x = at::ones({1000}, options);
  at::manual_seed(7);
  std::vector<at::Tensor> expected;
  for (int call = 0; call < 8; ++call) expected.push_back(program(x));
  at::manual_seed(7);
  auto fast = compile(program, unlimited({.mode = GetParam().mode}));
  for (size_t call = 0; call < 8; ++call) {
    if (call == 4) fast.reset();
    EXPECT_TRUE(at::equal(fast(x), expected[call])) << "call " << call;
  }
}

}  // namespace
}  // namespace sinter::test
