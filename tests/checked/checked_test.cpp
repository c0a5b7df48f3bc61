// Programs whose host code changes between calls and inside them, compiled with Replay::checked.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sinter/sinter.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "checked.h"

namespace sinter::test {
namespace {

using at::Tensor;
namespace nn = torch::nn;

TEST_F(Checked, a_chain_replays_from_its_second_call) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) { return (x * 0.5 * (1 + at::erf(x / 1.41421))).relu(); };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({33, 65});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  EXPECT_EQ(fast.stats().replayed, 5) << fast.report();
  EXPECT_EQ(fast.report().entries.size(), 1U);
}

TEST_F(Checked, a_branch_on_a_number_is_two_paths) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) { return x.sum().item<float>() > 0 ? x * 2 + 1 : x.abs() - 1; };
  auto fast = compile(program, checked());
  for (int call = 0; call < 12; ++call) {
    const Tensor x = at::full({5}, call % 3 == 0 ? -1.0 : 2.0 + call);
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  EXPECT_GE(fast.stats().replayed, 8) << fast.report();
}

TEST_F(Checked, a_loop_until_convergence_is_one_segment) {
  const c10::NoGradGuard no_grad;
  const Tensor a = at::randn({8, 8});
  const Tensor matrix = a.matmul(a.t()) + at::eye(8) * 8;
  const auto program = [&](Tensor x) {
    for (int i = 0; i < 100; ++i) {
      const Tensor y = matrix.matmul(x);
      const Tensor next = y / y.norm();
      const double moved = (next - x).abs().max().item<double>();
      x = next;
      if (moved < 1e-5) break;
    }
    return x;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = at::rand({8});
    ASSERT_TRUE(same(fast(x), program(x), 1e-4)) << call;
  }
  EXPECT_LE(fast.report().entries.size(), 4U) << fast.report();
  EXPECT_GE(fast.stats().replayed, 3);
}

TEST_F(Checked, host_state_that_changes_before_every_call_is_seen) {
  const c10::NoGradGuard no_grad;
  nn::Linear one(6, 6), other(6, 6);
  const Tensor first = one->weight, second = other->weight;
  double scale = 1;
  int64_t calls = 0;
  const auto program = [&](const Tensor& x) {
    ++calls;
    return calls % 3 == 0 ? one(x) * scale : other(x) + scale;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 10'000; ++call) {
    if (call % 2 == 0) std::swap(one->weight, other->weight);
    if (call % 5 == 0) one->weight = at::randn({6, 6});
    scale = call % 7;
    const Tensor x = at::randn({3, 6});
    const Tensor now = fast(x);
    --calls;
    ASSERT_TRUE(same(now, program(x))) << call;
  }
  EXPECT_EQ(calls, 10'000);
  EXPECT_GE(fast.stats().replayed, 9'900) << fast.report();
}

TEST_F(Checked, writes_to_state_and_arguments_are_done_in_order) {
  const c10::NoGradGuard no_grad;
  const auto run = [](bool compiled) {
    at::manual_seed(3);
    Tensor total = at::zeros({4});
    const auto program = [&](Tensor x) {
      total.add_(x);
      x.mul_(2).add_(total);
      total[0] = 5;
      return x.sum(0, true);
    };
    std::optional<Compiled<std::decay_t<decltype(program)>>> fast;
    if (compiled) fast.emplace(program, checked());
    std::vector<Tensor> seen;
    for (int call = 0; call < 6; ++call) {
      Tensor x = at::randn({4});
      seen.push_back((compiled ? (*fast)(x) : program(x)).clone());
      seen.push_back(x);
      seen.push_back(total.clone());
    }
    if (compiled) {
      EXPECT_GE(fast->stats().replayed, 4) << fast->report();
    }
    return seen;
  };
  const auto wanted = run(false), now = run(true);
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_TRUE(same(now[i], wanted[i])) << i;
}

struct Net : nn::Module {
  Net() {
    layers = register_module(
        "layers", nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).bias(false)), nn::BatchNorm2d(8),
                                 nn::ReLU(), nn::Flatten(), nn::Linear(8 * 8 * 8, 10)));
  }
  Tensor forward(const Tensor& x) { return layers->forward(x); }
  nn::Sequential layers{nullptr};
};

template <class Optimizer, class Settings>
void train(const Settings& settings, int64_t least_replayed, bool step_inside = true) {
  const auto run = [&](bool compiled) {
    at::manual_seed(5);
    auto net = std::make_shared<Net>();
    Optimizer optimizer(net->parameters(), settings);
    const auto program = [&](const Tensor& x, const Tensor& y) {
      optimizer.zero_grad();
      const Tensor loss = at::cross_entropy_loss(net->forward(x), y);
      loss.backward();
      if (step_inside) optimizer.step();
      return loss.detach();
    };
    std::optional<Compiled<std::decay_t<decltype(program)>>> fast;
    if (compiled) fast.emplace(program, checked());
    std::vector<Tensor> seen;
    for (int step = 0; step < 8; ++step) {
      for (auto& group : optimizer.param_groups()) group.options().set_lr(step < 4 ? 0.01 : 0.005);
      const Tensor x = at::randn({4, 3, 8, 8});
      const Tensor y = at::randint(10, {4});
      seen.push_back(compiled ? (*fast)(x, y) : program(x, y));
      if (!step_inside) optimizer.step();
    }
    for (const Tensor& parameter : net->parameters()) seen.push_back(parameter.detach());
    for (const Tensor& buffer : net->buffers()) seen.push_back(buffer);
    if (compiled) {
      EXPECT_GE(fast->stats().replayed, least_replayed) << fast->report();
    }
    return seen;
  };
  const auto wanted = run(false), now = run(true);
  ASSERT_EQ(wanted.size(), now.size());
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_TRUE(same(now[i], wanted[i], 1e-3)) << i;
}

TEST_F(Checked, a_training_step_with_sgd_and_a_schedule) {
  train<torch::optim::SGD>(torch::optim::SGDOptions(0.01).momentum(0.9), 3);
}
TEST_F(Checked, a_training_step_with_adam) { train<torch::optim::Adam>(torch::optim::AdamOptions(0.01), 3); }
TEST_F(Checked, gradients_inside_and_the_step_outside) {
  train<torch::optim::SGD>(torch::optim::SGDOptions(0.01), 3, false);
}

TEST_F(Checked, a_compiled_forward_joins_autograd) {
  nn::Linear layer(5, 3);
  const auto program = [&](const Tensor& x) { return layer(x).tanh() * 2; };
  auto fast = compile(program, checked());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = at::randn({2, 5});
    layer->zero_grad();
    program(x).sum().backward();
    const Tensor wanted = layer->weight.grad().clone();
    layer->zero_grad();
    const Tensor now = fast(x);
    EXPECT_TRUE(now.requires_grad());
    now.sum().backward();
    ASSERT_TRUE(same(layer->weight.grad(), wanted)) << call;
  }
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
}

TEST_F(Checked, random_numbers_are_eagers) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    const Tensor noise = at::randn_like(x);
    return at::dropout(x * 2 + noise, 0.5, true) + at::rand({3});
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = at::randn({4, 3});
    at::manual_seed(call);
    const Tensor wanted = program(x);
    at::manual_seed(call);
    ASSERT_TRUE(same(fast(x), wanted)) << call;
  }
}

TEST_F(Checked, an_exception_leaves_what_eager_leaves) {
  const c10::NoGradGuard no_grad;
  Tensor total = at::zeros({3});
  int64_t calls = 0;
  const auto program = [&](const Tensor& x) {
    total.add_(x);
    if (++calls % 2 == 0) throw std::runtime_error("half way");
    return total * 2;
  };
  auto fast = compile(program, checked());
  Tensor wanted = at::zeros({3});
  for (int call = 0; call < 8; ++call) {
    const Tensor x = at::randn({3});
    wanted.add_(x);
    if (call % 2 == 1) {
      EXPECT_THROW((void)fast(x), std::runtime_error) << call;
    } else {
      EXPECT_TRUE(same(fast(x), wanted * 2));
    }
    ASSERT_TRUE(same(total, wanted)) << call;
  }
}

TEST_F(Checked, a_number_that_is_new_on_every_call_is_given_on_every_call) {
  const c10::NoGradGuard no_grad;
  int64_t calls = 0;
  const auto program = [&](const Tensor& x) { return x * static_cast<double>(++calls); };
  auto fast = compile(program, checked());
  for (int call = 0; call < 30; ++call) {
    const Tensor x = at::ones({3});
    ASSERT_EQ(fast(x)[0].item<double>(), static_cast<double>(call + 1));
  }
  EXPECT_GE(fast.stats().replayed, 27);  // the number is given on every call
}

TEST_F(Checked, a_number_reaches_an_operator_that_runs_whole) {
  const c10::NoGradGuard no_grad;
  double highest = 0;
  const auto program = [&](const Tensor& x) {
    Tensor kept = at::clamp(x, -1.5, highest += 0.25);
    (void)at::cumsum_out(kept, x, 0);  // written again: no kernel may hold it
    return kept + 1;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({3, 1});
    const Tensor result = fast(x);
    EXPECT_TRUE(at::equal(result, x.cumsum(0) + 1));
  }
  EXPECT_GE(fast.stats().replayed, 3);
}

TEST_F(Checked, operators_that_are_new_on_every_call_are_left_to_eager) {
  const c10::NoGradGuard no_grad;
  int64_t calls = 0;
  const auto program = [&](const Tensor& x) { return x.pow(static_cast<double>(++calls % 199) / 7); };
  Options options = checked();
  options.compile_budget = 0;
  auto fast = compile(program, options);
  for (int call = 0; call < 198; ++call) {
    const Tensor x = at::full({3}, 1.5);
    ASSERT_TRUE(same(fast(x), x.pow((call + 1) / 7.0))) << call;
  }
  EXPECT_GT(fast.stats().eager, 100);
}

TEST_F(Checked, an_operator_that_throws_inside_is_no_step) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    const Tensor y = x * 2;
    Tensor z = y + 1;
    try {
      z = y.matmul(at::ones({x.size(0) + 1}));
    } catch (const c10::Error&) {
      z = z - y.sum();
    }
    return z.relu() + y;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = at::randn({4});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
}

TEST_F(Checked, threads_share_what_was_recorded) {
  const auto program = [](const Tensor& x) { return (x * 2 + 1).tanh() - x; };
  auto fast = compile(program, checked());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const c10::NoGradGuard no_grad;
      for (int call = 0; call < 50; ++call) {
        const Tensor x = at::full({6 + i % 2}, call + i, at::kFloat);
        if (!same(fast(x), program(x))) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Checked, other_sizes_share_kernels_from_the_third_on) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) { return at::sigmoid(x * 1.25 - 0.5) * x; };
  auto fast = compile(program, checked());
  for (const int64_t size : {400, 500, 600, 700}) {
    for (int call = 0; call < 3; ++call) {
      const Tensor x = at::randn({size, 3});
      ASSERT_TRUE(same(fast(x), program(x))) << size << " " << call;
    }
  }
  const Report report = fast.report();
  ASSERT_EQ(report.entries.size(), 2U) << "400 and 500, and the others among them: they follow from those" << report;
  EXPECT_EQ(report.entries[0].instantiations, 2);
  EXPECT_EQ(report.entries[0].built_for_instantiations, 0);
  auto options = checked();
  options.dynamic = false;
  auto exact = compile(program, options);
  for (const int64_t size : {400, 500, 600}) {
    for (int call = 0; call < 3; ++call) (void)exact(at::randn({size, 3}));
  }
  for (const EntryReport& entry : exact.report().entries) {
    EXPECT_EQ(entry.notes, std::vector<std::string>{"ends at the end of the call"});
  }
}

TEST_F(Checked, an_operator_that_throws_every_time_does_not_keep_calls_from_replaying) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    Tensor y = x * 2 + 1;
    try {
      y = y.matmul(x);  // other sizes
    } catch (const c10::Error&) {
      y = y.matmul(x.t());
    }
    return y.relu();
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = at::randn({2, 3});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  EXPECT_GE(fast.stats().replayed, 5) << fast.report();
}

TEST_F(Checked, a_call_without_operators_counts_as_replayed) {
  auto fast = compile([](const Tensor& x) { return x; }, checked());
  const Tensor x = at::randn({2});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(fast(x).is_same(x));
  EXPECT_EQ(fast.stats().replayed, 3);
}

TEST_F(Checked, what_is_new_all_the_time_is_left_to_eager) {
  const c10::NoGradGuard no_grad;
  auto options = checked();
  options.compile_budget = 0;
  auto fast = compile([](const Tensor& x) { return x * 2 + 1; }, options);
  constexpr int shapes = 200;
  for (int call = 0; call < shapes; ++call) {
    const Tensor x = at::randn({call + 1});
    ASSERT_TRUE(same(fast(x), x * 2 + 1)) << call;
  }
  EXPECT_LE(fast.stats().recorded, 8) << fast.report();
  EXPECT_GE(fast.stats().eager, shapes - 10) << fast.report();
}

TEST_F(Checked, ten_thousand_branches_are_right_and_few_are_recorded) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x, int64_t branch) {
    Tensor y = x;
    for (int bit = 0; bit < 14; ++bit) y = (branch >> bit & 1) != 0 ? y * 0.5 : y.neg();
    return y;
  };
  auto options = checked();
  options.compile_budget = Options{}.compile_budget;
  auto fast = compile(program, options);
  constexpr int64_t branches = 10'000;
  const Tensor x = at::randn({3});
  for (int64_t branch = 0; branch < branches; ++branch) {
    ASSERT_TRUE(same(fast(x, branch), program(x, branch))) << branch;
  }
  EXPECT_LT(fast.stats().recorded, branches / 5) << fast.stats().eager;  // a tenth of the time, not of the calls
}

}  // namespace
}  // namespace sinter::test
