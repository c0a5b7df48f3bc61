// Replay::trusted: which calls are answered without the callable's host code, and that those which are not, or no
// longer, do what eager does.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/api/where.h"

namespace sinter::test {
namespace {

using at::Tensor;
namespace nn = torch::nn;

/// Checked calls that a program needs until it is known: the first is recorded, and the two after it have to agree.
constexpr int kLearning = 3;

class Trusted : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    at::manual_seed(7);
  }

  [[nodiscard]] Options options() const {
    Options options;
    options.mode = GetParam().mode;
    options.replay = Replay::trusted;
    options.strict = true;
    options.compile_budget = std::numeric_limits<double>::infinity();
    return options;
  }
  [[nodiscard]] Tensor random(at::IntArrayRef sizes) const { return at::randn(sizes, at::TensorOptions(device())); }
  [[nodiscard]] at::Device device() const { return GetParam().device; }
};

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

/// Runs a program of one tensor for some calls beside eager; gives how often the compiled one's host code ran in the
/// last three of them.
template <class Program>
int late_runs(const Program& program, const Options& options, const std::function<Tensor()>& draw, std::string* text) {
  int runs = 0;
  const auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return program(x);
      },
      options);
  for (int call = 0; call < 12; ++call) {
    if (call == 9) runs = 0;
    const Tensor x = draw();
    at::manual_seed(100 + call);
    const Tensor wanted = program(x).clone();
    at::manual_seed(100 + call);
    EXPECT_TRUE(same(fast(x), wanted)) << "call " << call;
  }
  *text = fast.report().text();
  return runs;
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

TEST_P(Trusted, what_cannot_be_known_without_the_host_code_is_checked_on_every_call) {
  const c10::NoGradGuard no_grad;
  const auto draw = [&] { return random({7}); };
  const auto stays_checked = [&](const char* what, const auto& program, const std::string& reason) {
    std::string text;
    EXPECT_EQ(late_runs(program, options(), draw, &text), 3) << what << "\n" << text;
    EXPECT_NE(text.find(reason), std::string::npos) << what << "\n" << text;
  };
  stays_checked(
      "a read", [](const Tensor& x) { return x.sum().item<float>() > 0 ? x + 1 : x - 1; }, "runs between segments");
  stays_checked("a draw", [](const Tensor& x) { return x * at::rand_like(x); }, "");
  Tensor cache;
  stays_checked("a kept tensor", [&](const Tensor& x) { return (cache = x * 2) + 1; }, "kept beside its results");
  stays_checked(
      "a result that is kept as well", [&](const Tensor& x) { return cache = x * 2; }, "kept beside its results");
  stays_checked(
      "memory that it makes and keeps",
      [&](const Tensor& x) {
        cache = at::empty({7}, x.options());
        at::mul_out(cache, x, x);
        return x * 2;
      },
      "kept beside its results");
  stays_checked(
      "a setting",
      [](const Tensor& x) {
        const bool before = at::globalContext().deterministicAlgorithms();
        at::globalContext().setDeterministicAlgorithms(true, false);
        const Tensor y = at::matmul(x.unsqueeze(0), x.unsqueeze(1)) + x;
        at::globalContext().setDeterministicAlgorithms(before, false);
        return y;
      },
      "settings");
  stays_checked(
      "a tensor of the host",
      [&](const Tensor& x) {
        std::vector<float> numbers{1, 2, 3, 4, 5, 6, 7};
        return x + at::from_blob(numbers.data(), {7}, at::kFloat).clone().to(x.device());
      },
      "");
}

TEST_P(Trusted, a_callable_that_changes_what_its_arguments_hold_is_checked_on_every_call) {
  const c10::NoGradGuard no_grad;
  const auto swapped = compile(
      [](Tensor& a, Tensor& b, int& calls) {
        ++calls;
        std::swap(a, b);
        return a * 2;
      },
      options());
  Tensor a = random({7}), b = random({7});
  int calls = 0;
  for (int call = 0; call < 8; ++call) {
    const Tensor was_a = a, was_b = b;
    ASSERT_TRUE(same(swapped(a, b, calls), was_b * 2)) << call;
    ASSERT_TRUE(a.is_same(was_b) && b.is_same(was_a)) << call;
  }
  EXPECT_EQ(calls, 8);
  EXPECT_NE(swapped.report().text().find("changes which tensors or numbers"), std::string::npos) << swapped.report();
  const auto grown = compile(
      [](std::vector<Tensor>& all, const Tensor& x) {
        all.push_back(x + 1);
        return x * 2;
      },
      options());
  std::vector<Tensor> all;
  for (size_t call = 0; call < 8; ++call) {
    (void)grown(all, random({7}));
    ASSERT_EQ(all.size(), call + 1);
  }
}

TEST_P(Trusted, numbers_of_the_host_that_change_are_seen_while_the_call_is_learnt) {
  const c10::NoGradGuard no_grad;
  double factor = 0;
  int runs = 0;
  const auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return x * factor;
      },
      options());
  for (int call = 0; call < 10; ++call) {
    factor = call + 0.5;
    const Tensor x = random({7});
    ASSERT_TRUE(same(fast(x), x * factor)) << call;
  }
  EXPECT_EQ(runs, 10) << fast.report();
  EXPECT_NE(fast.report().text().find("differs from call to call"), std::string::npos) << fast.report();
  const auto filled = compile([&](const Tensor& x) { return x * 2 + at::full({7}, factor, x.options()); }, options());
  for (int call = 0; call < 10; ++call) {
    factor = call + 0.5;
    const Tensor x = random({7});
    ASSERT_TRUE(same(filled(x), x * 2 + factor)) << call;
  }
}

TEST_P(Trusted, calls_agree_only_in_a_row) {
  const c10::NoGradGuard no_grad;
  int runs = 0;
  const auto fast =
      compile([&](const Tensor& x) { return ++runs % 2 == 0 ? x.exp() + runs / 20 : x.sin() * 3; }, options());
  for (int call = 1; call < 12; ++call) {
    const Tensor x = random({7});
    ASSERT_TRUE(same(fast(x), call % 2 == 0 ? x.exp() : x.sin() * 3)) << call;
  }
  EXPECT_EQ(runs, 11) << fast.report();
}

TEST_P(Trusted, gradients_and_training_steps_run_their_host_code) {
  nn::Sequential net(nn::Linear(6, 8), nn::BatchNorm1d(8), nn::Linear(8, 2));
  net->to(device());
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  int runs = 0;
  const auto step = compile(
      [&](const Tensor& x) {
        ++runs;
        optimizer.zero_grad();
        const Tensor loss = net->forward(x).square().mean();
        loss.backward();
        optimizer.step();
        return loss.detach();
      },
      options());
  for (int call = 0; call < 8; ++call) (void)step(random({5, 6}));
  EXPECT_EQ(runs, 8) << step.report();
  const auto forward = compile(
      [&](const Tensor& x) {
        ++runs;
        return net->forward(x);
      },
      options());
  for (int call = 0; call < 8; ++call) EXPECT_TRUE(forward(random({5, 6})).requires_grad());
  EXPECT_EQ(runs, 16) << forward.report();
}

TEST_P(Trusted, a_tangent_is_carried_on) {
  const auto program = [](const Tensor& x) { return x.sin() * 2; };
  const auto fast = compile(program, options());
  const c10::NoGradGuard no_grad;
  for (int call = 0; call < 6; ++call) (void)fast(random({4}));
  const Tensor x = random({4});
  const Tensor tangent = random({4});
  torch::autograd::ForwardADLevel::try_get_by_idx(0);
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  const Tensor dual = at::_make_dual(x, tangent, static_cast<int64_t>(level));
  const Tensor result = fast(dual);
  EXPECT_TRUE(same(result._fw_grad(level), program(dual)._fw_grad(level)));
  torch::autograd::ForwardADLevel::release_idx(level);
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
