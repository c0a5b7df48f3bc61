// Replay::trusted: which calls are answered without the callable's host code, and that those which are not, or no
// longer, do what eager does.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/trusted/trusted.h"

namespace sinter::test {
namespace {

using at::Tensor;
namespace nn = torch::nn;

TEST_P(Trusted, host_code_is_left_out_once_two_calls_agreed) {
  const c10::NoGradGuard no_grad;
  const Tensor weight = random({16, 16});
  int runs = 0;
  const auto program = [&](const Tensor& x) {
    ++runs;
    return at::matmul(x, weight).relu() * 2;
  };
  const auto fast = compile(program, options());
  for (int call = 0; call < 10; ++call) {
    const Tensor x = random({4, 16});
    ASSERT_TRUE(same(fast(x), at::matmul(x, weight).relu() * 2)) << call;
  }
  EXPECT_EQ(runs, kLearning) << fast.report();
  EXPECT_EQ(fast.stats().replayed, 9) << fast.report();
  EXPECT_NE(fast.report().text().find("7 calls ran without the callable's host code"), std::string::npos)
      << fast.report();
}

TEST_P(Trusted, what_guards_see_is_run_and_learnt_anew) {
  const c10::NoGradGuard no_grad;
  int runs = 0;
  const auto plain = [](const Tensor& x, double factor, bool add) { return add ? x * factor + 1 : x * factor - 1; };
  const auto fast = compile(
      [&](const Tensor& x, double factor, bool add) {
        ++runs;
        return plain(x, factor, add);
      },
      options());
  const Tensor wide = random({8, 12});
  const std::vector<Tensor> shapes{wide, random({8, 11}), wide.t(), wide.slice(1, 1, 9), wide.to(at::kDouble)};
  for (int round = 0; round < 6; ++round) {
    runs = 0;
    for (const Tensor& x : shapes) {
      for (const bool add : {false, true}) ASSERT_TRUE(same(fast(x, 2.5, add), plain(x, 2.5, add))) << round;
    }
  }
  EXPECT_EQ(runs, 0) << "all ten combinations are known: " << fast.report();
  ASSERT_TRUE(same(fast(wide, 3.5, true), plain(wide, 3.5, true))) << "another number";
  EXPECT_EQ(runs, 1);
  {
    const c10::InferenceMode inference;
    ASSERT_TRUE(same(fast(wide, 2.5, true), plain(wide, 2.5, true))) << "another mode";
    EXPECT_EQ(runs, 2);
  }
}

TEST_P(Trusted, contents_of_state_count_and_so_does_other_memory_under_it) {
  const c10::NoGradGuard no_grad;
  nn::Linear linear(6, 6);
  linear->to(device());
  int runs = 0;
  const auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return linear(x).relu();
      },
      options());
  const auto agrees = [&](int calls) {
    for (int call = 0; call < calls; ++call) {
      const Tensor x = random({3, 6});
      ASSERT_TRUE(same(fast(x), linear(x).relu()));
    }
  };
  agrees(6);
  EXPECT_EQ(runs, kLearning);
  linear->weight.mul_(3);
  agrees(2);
  EXPECT_EQ(runs, kLearning) << "contents are read by every call";
  linear->weight.set_data(random({6, 6}));
  agrees(5);
  EXPECT_GT(runs, kLearning) << "other memory under the same tensor";
  runs = 0;
  linear = nn::Linear(6, 6);
  linear->to(device());
  agrees(5);
  EXPECT_GT(runs, 0) << "the tensors it read are gone";
  runs = 0;
  agrees(2);
  EXPECT_EQ(runs, 0) << fast.report();
}

TEST_P(Trusted, results_lie_where_eager_puts_them) {
  const c10::NoGradGuard no_grad;
  const Tensor state = random({4, 4});
  int runs = 0;
  const auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        const Tensor y = x + state;
        return std::vector<Tensor>{x, x.t(), x.slice(0, 1, 3), state, state.select(0, 1), y, y.t(), y};
      },
      options());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = random({4, 4});
    const Tensor sum = x + state;
    const auto results = fast(x);
    ASSERT_EQ(results.size(), 8U);
    const std::vector<Tensor> wanted{x, x.t(), x.slice(0, 1, 3), state, state.select(0, 1), sum, sum.t(), sum};
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_TRUE(same(results[i], wanted[i])) << call << ", result " << i;
    EXPECT_TRUE(results[0].is_same(x));
    EXPECT_TRUE(results[1].is_alias_of(x) && results[2].is_alias_of(x));
    EXPECT_TRUE(results[3].is_same(state));
    EXPECT_TRUE(results[4].is_alias_of(state));
    EXPECT_TRUE(results[7].is_same(results[5]));
    EXPECT_TRUE(results[6].is_alias_of(results[5]));
    EXPECT_FALSE(results[5].is_alias_of(x));
    results[2].zero_();
    EXPECT_EQ(x.slice(0, 1, 3).abs().sum().item<float>(), 0);
    results[6].zero_();
    EXPECT_EQ(results[5].abs().sum().item<float>(), 0);
  }
  EXPECT_EQ(runs, kLearning) << fast.report();
}

TEST_P(Trusted, detached_views_of_arguments_take_no_part_in_gradients) {
  const at::AutoGradMode grad(true);
  int runs = 0;
  const auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        const Tensor apart = x.detach();
        apart.mul_(2);
        return std::vector<Tensor>{apart, apart.select(0, 1)};
      },
      options());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = random({4, 4}).requires_grad_();
    const auto results = fast(x);
    for (const Tensor& result : results) {
      EXPECT_FALSE(result.requires_grad()) << call;
      EXPECT_TRUE(result.is_alias_of(x)) << call;
    }
    EXPECT_FALSE(results[0].is_view()) << call;
    results[0].add_(random({4, 4}).requires_grad_());  // which a view of x would refuse, a leaf
  }
  EXPECT_EQ(runs, kLearning) << fast.report();
}

TEST_P(Trusted, results_that_share_memory_are_views_and_count_the_same_writes) {
  int runs = 0;
  const auto plain = [](const Tensor& x) {
    const Tensor y = x * 2, filled = at::zeros({4}, x.options());
    y.t().add_(1);
    filled.add_(x.select(0, 0));
    const c10::NoGradGuard no_grad;
    return std::vector<Tensor>{
        y, y.t(), y.select(0, 1), y.detach(), (x + 1).unfold(0, 2, 1), filled, filled.view({2, 2})};
  };
  const auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return plain(x);
      },
      options());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = random({4, 4});
    const auto found = fast(x), wanted = plain(x);
    const auto expect_agreement = [&] {
      for (size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_TRUE(same(found[i], wanted[i])) << call << ", result " << i;
        EXPECT_EQ(found[i].is_view(), wanted[i].is_view()) << call << ", result " << i;
        EXPECT_EQ(found[i]._version(), wanted[i]._version()) << call << ", result " << i;
      }
    };
    expect_agreement();
    found[0].mul_(3);
    wanted[0].mul_(3);
    expect_agreement();
    const Tensor w = random({4, 4}).requires_grad_();
    const Tensor loss = (w * found[1]).sum();
    found[0].add_(1);
    EXPECT_THROW(loss.backward(), c10::Error) << call;
  }
  EXPECT_EQ(runs, kLearning) << fast.report();
}

TEST_P(Trusted, results_of_two_calls_are_two_memories) {
  const c10::NoGradGuard no_grad;
  const auto fast = compile(
      [&](const Tensor& x) {
        Tensor filled = at::zeros({3}, x.options());
        filled.add_(x);
        const Tensor given = at::empty({3}, x.options());
        at::add_out(const_cast<Tensor&>(given), x, x);
        return std::pair(filled, given);
      },
      options());
  std::vector<std::pair<Tensor, Tensor>> kept;
  std::vector<Tensor> inputs;
  for (int call = 0; call < 8; ++call) {
    inputs.push_back(random({3}));
    kept.push_back(fast(inputs.back()));
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_TRUE(same(kept[i].first, inputs[i])) << i;
    EXPECT_TRUE(same(kept[i].second, inputs[i] * 2)) << i;
  }
}

TEST_P(Trusted, writes_reach_arguments_and_state_and_count_in_their_versions) {
  const c10::NoGradGuard no_grad;
  const Tensor total = random({5}).zero_();
  const Tensor wanted = total.clone();
  int runs = 0;
  const auto fast = compile(
      [&](Tensor x) {
        ++runs;
        total.add_(x);
        x.mul_(2);
        return x.sum();
      },
      options());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = random({5});
    wanted.add_(x);
    const Tensor doubled = x * 2;
    const auto before = std::pair(x._version(), total._version());
    ASSERT_TRUE(same(fast(x), doubled.sum())) << call;
    ASSERT_TRUE(same(x, doubled)) << call;
    ASSERT_TRUE(same(total, wanted)) << call;
    EXPECT_GT(x._version(), before.first) << call;
    EXPECT_GT(total._version(), before.second) << call;
  }
  EXPECT_EQ(runs, kLearning) << fast.report();
}

TEST_P(Trusted, arguments_that_share_memory_with_others_or_with_state_are_told_apart) {
  const c10::NoGradGuard no_grad;
  const Tensor state = random({6});
  const auto plain = [&](Tensor a, const Tensor& b) {
    a.add_(1);
    state.mul_(0.5);
    return a + b * state;
  };
  const auto fast = compile([&](Tensor a, const Tensor& b) { return plain(std::move(a), b); }, options());
  const auto agrees = [&](const Tensor& a, const Tensor& b) {
    const Tensor kept_state = state.clone(), kept_a = a.clone(), kept_b = b.clone();
    const Tensor wanted = plain(a, b).clone();
    const Tensor after = state.clone();
    state.copy_(kept_state);
    if (!a.is_alias_of(state)) a.copy_(kept_a);
    if (!b.is_alias_of(a) && !b.is_alias_of(state)) b.copy_(kept_b);
    ASSERT_TRUE(same(fast(a, b), wanted));
    ASSERT_TRUE(same(state, after));
  };
  for (int call = 0; call < 6; ++call) agrees(random({6}), random({6}));
  const Tensor a = random({6});
  agrees(a, a);
  const Tensor both = random({9});
  agrees(both.slice(0, 0, 6), both.slice(0, 3, 9));
  agrees(state, random({6}));
  agrees(random({6}), state);
  for (int call = 0; call < 3; ++call) agrees(random({6}), random({6}));
}

TEST_P(Trusted, views_of_what_the_call_makes_may_be_changed_in_place) {
  const c10::NoGradGuard no_grad;
  int runs = 0;
  const auto plain = [](const Tensor& x) {
    Tensor y = (x * 2).t_();
    Tensor z = x.exp().as_strided_({2, 3}, {3, 1}, 1);
    return std::make_tuple(y.unsqueeze_(0), z + 1);
  };
  const auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return plain(x);
      },
      options());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = random({4, 5});
    const auto [y, z] = fast(x);
    const auto [wanted_y, wanted_z] = plain(x);
    ASSERT_TRUE(same(y, wanted_y)) << call;
    ASSERT_EQ(y.strides(), wanted_y.strides()) << call;
    ASSERT_TRUE(same(z, wanted_z)) << call;
  }
  EXPECT_EQ(runs, kLearning) << fast.report();
}

TEST_P(Trusted, several_threads_call_what_is_known) {
  const Tensor weight = random({32, 32});
  std::atomic<int> wrong{0};
  const auto plain = [&](const Tensor& x) { return at::matmul(x, weight).tanh() + x; };
  const auto fast = compile([&](const Tensor& x) { return plain(x); }, options());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const c10::NoGradGuard no_grad;
      for (int call = 0; call < 40; ++call) {
        const Tensor x = at::full({3 + (thread + call) % 3, 32}, 0.01 * call, weight.options());
        if (!same(fast(x), plain(x))) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Trusted, inside_of_another_compiled_function_and_after_a_reset) {
  const c10::NoGradGuard no_grad;
  int runs = 0;
  const auto inner = compile(
      [&](const Tensor& x) {
        ++runs;
        return x.exp() + 1;
      },
      options());
  for (int call = 0; call < 6; ++call) (void)inner(random({5}));
  EXPECT_EQ(runs, kLearning);
  const auto outer = compile([&](const Tensor& x) { return inner(x * 2).sqrt(); }, options());
  for (int call = 0; call < 7; ++call) {
    const Tensor x = random({5});
    ASSERT_TRUE(same(outer(x), ((x * 2).exp() + 1).sqrt())) << call;
  }
  inner.reset();
  runs = 0;
  for (int call = 0; call < 6; ++call) {
    const Tensor x = random({5});
    ASSERT_TRUE(same(inner(x), x.exp() + 1)) << call;
  }
  EXPECT_EQ(runs, kLearning);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Trusted, ::testing::Values(Where{"cpu", at::kCPU, Mode::Default}), name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, Trusted,
                         ::testing::Values(Where{"direct", at::kCUDA, Mode::Default},
                                           Where{"graphs", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

}  // namespace
}  // namespace sinter::test
