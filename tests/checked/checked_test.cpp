// Programs whose host code changes between calls and inside them, compiled with Replay::checked.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sinter/sinter.h>
#include <torch/csrc/autograd/generated/variable_factories.h>
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
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace sinter::test {
namespace {

using at::Tensor;
namespace nn = torch::nn;

Options checked() {
  Options options;
  options.replay = Replay::checked;
  options.strict = true;
  options.compile_budget = std::numeric_limits<double>::infinity();
  return options;
}

::testing::AssertionResult same(const Tensor& now, const Tensor& wanted, double tolerance = 1e-5) {
  if (now.sizes() != wanted.sizes() || now.strides() != wanted.strides())
    return ::testing::AssertionFailure() << "layout";
  if (now.scalar_type() != wanted.scalar_type()) return ::testing::AssertionFailure() << "dtype";
  if (at::allclose(now, wanted, tolerance, tolerance, /*equal_nan=*/true)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "largest difference " << (now - wanted).abs().max().item<double>();
}

class Checked : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(7); }
};

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

TEST_F(Checked, views_under_inference_mode_are_what_their_bases_are) {
  const c10::InferenceMode inference;
  const auto seen = [](auto&& program, bool inside) {
    Tensor x;
    {
      const c10::InferenceMode outside(inside);
      x = at::zeros({100}, at::kInt);
    }
    const Tensor view = program(x);
    return std::pair(view.is_inference(), x.is_inference() ? 0 : x._version());
  };
  const auto other_dtype = [](const Tensor& x) { return x.view(at::kByte).add_(1); };
  const auto part = [](const Tensor& x) { return x.slice(0, 1).add_(1); };
  auto fast_other_dtype = compile(other_dtype, checked());
  auto fast_part = compile(part, checked());
  for (int call = 0; call < 4; ++call) {
    for (const bool inside : {false, true}) {
      EXPECT_EQ(seen(fast_other_dtype, inside), seen(other_dtype, inside)) << call << inside;
      EXPECT_EQ(seen(fast_part, inside), seen(part, inside)) << call << inside;
    }
  }
}

TEST_F(Checked, results_are_fresh_and_views_share_memory) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    const Tensor y = x + 1;
    return std::vector<Tensor>{y, y.t(), y.select(0, 1)};
  };
  auto fast = compile(program, checked());
  std::vector<Tensor> before;
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({4, 5});
    const auto now = fast(x);
    for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(same(now[i], program(x)[i])) << call << " " << i;
    EXPECT_TRUE(now[1].is_alias_of(now[0]));
    EXPECT_TRUE(now[2].is_alias_of(now[0]));
    if (!before.empty()) {
      EXPECT_FALSE(now[0].is_alias_of(before[0]));
    }
    before = now;
  }
  EXPECT_EQ(fast.stats().replayed, 3);
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

TEST_F(Checked, whoever_keeps_a_tensor_finds_its_data) {
  const c10::NoGradGuard no_grad;
  Tensor kept;
  const auto program = [&](const Tensor& x) {
    kept = x * 3;
    return kept + 1;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = at::randn({7});
    ASSERT_TRUE(same(fast(x), x * 3 + 1));
    ASSERT_TRUE(same(kept, x * 3));
  }
  EXPECT_EQ(fast.stats().replayed, 4);
}

TEST_F(Checked, raw_memory_is_never_read_before_it_is_there) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    const Tensor y = x * 2;
    return y.const_data_ptr<float>()[0] > 0 ? y + 1 : y - 1;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({5});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  const Report report = fast.report();
  ASSERT_FALSE(report.entries.empty());
  EXPECT_EQ(report.entries.back().breaks.size(), 1U) << report;
}

TEST_F(Checked, tensors_that_the_host_fills_are_inputs) {
  const c10::NoGradGuard no_grad;
  float number = 0;
  const auto program = [&](const Tensor& x) {
    number += 1;
    const Tensor rows = at::empty({3, 4});
    for (int i = 0; i < 3; ++i) rows[i] = x * (i + 1);
    return rows + at::tensor({number, 2.0F, 3.0F, 4.0F});
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({4});
    const Tensor now = fast(x);
    number -= 1;
    ASSERT_TRUE(same(now, program(x))) << call;
  }
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
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

TEST_F(Checked, memory_that_is_asked_for_after_a_write_is_an_error) {
  const c10::NoGradGuard no_grad;
  Tensor total = at::zeros({2});
  const auto program = [&](const Tensor& x) {
    total.add_(x);
    const bool positive = total.sum().item<float>() > 0;
    const Tensor y = x * 2;
    return positive && y.const_data_ptr<float>()[0] > 0 ? y + 1 : y - 1;
  };
  auto fast = compile(program, checked());
  (void)fast(at::ones({2}));
  EXPECT_THROW((void)fast(at::ones({2})), UserError);
  EXPECT_TRUE(same(total, at::full({2}, 2.0F)));
  EXPECT_TRUE(same(fast(at::ones({2})), at::full({2}, 3.0F)));
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

TEST_F(Checked, memory_asked_for_is_there) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x, Tensor& state) {
    const Tensor y = x * 2 + 1;
    const float first = *materialize(y).const_data_ptr<float>();  // a stand-in's
    state.mul_(y.sum() * 0.01);
    const float second = *materialize(state).const_data_ptr<float>();  // one that a segment writes
    const Tensor z = y + first + second;
    materialize(x).data_ptr<float>()[0] = 7;  // what y is made of has been read by now
    return z + x;
  };
  auto fast = compile(program, checked());
  Tensor ours = at::ones({4}), theirs = at::ones({4});
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({4}), y = x.clone();
    ASSERT_TRUE(same(fast(x, ours), program(y, theirs))) << call;
    ASSERT_TRUE(same(ours, theirs)) << call;
    ASSERT_TRUE(same(x, y)) << call;
  }
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
  (void)materialize(Tensor());
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
  ASSERT_EQ(report.entries.size(), 4U) << report;
  for (const size_t later : {2, 3}) {
    for (const KernelRecord& kernel : report.entries[later].kernels) EXPECT_EQ(kernel.origin, "shared") << report;
  }
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

TEST_F(Checked, numbers_that_the_host_puts_into_a_tensor_are_given_on_every_call) {
  const c10::NoGradGuard no_grad;
  float number = 0;
  const auto program = [&](const Tensor& x) {
    const Tensor factors = torch::tensor({number, 2.0F, 3.0F});
    return x * factors + torch::tensor({{number * 2}, {number}, {1.0F}});
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    number += 1;
    const Tensor x = at::randn({3, 3});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
  EXPECT_EQ(fast.stats().replayed, 5) << fast.report();
}

TEST_F(Checked, a_few_elements_filled_between_their_readers) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    Tensor few = at::zeros({3});
    few.select(0, 1).fill_(2);
    const Tensor before = x + few;  // reads them
    few.select(0, 0).fill_(5);
    few.select(0, 2).fill_(before.sum());  // a stand-in's number
    return before * few;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({4, 3});
    ASSERT_TRUE(same(fast(x), program(x))) << call;
  }
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
  EXPECT_GE(fast.stats().eager, shapes - 8) << fast.report();
}

}  // namespace
}  // namespace sinter::test
