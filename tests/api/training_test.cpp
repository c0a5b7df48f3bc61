#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <functional>

#include "api_test.h"

namespace sinter::test {
namespace {

using at::Tensor;

struct Where {
  const char* name;
  at::DeviceType device;
  Mode mode;
};

/// Whole training steps, in grad mode. Skipped where the device is missing.
class Training : public ::testing::TestWithParam<Where> {
 protected:
  void SetUp() override {
    if (GetParam().device == at::kCUDA && !at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }
  Options options() const { return {.mode = GetParam().mode, .strict = true}; }
  Tensor randn(c10::IntArrayRef sizes) { return at::randn(sizes, generator_, at::kFloat).to(GetParam().device); }

 private:
  at::AutoGradMode grad_{true};
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(11);
};

/// Both have the same parameters, buffers and gradients, up to what another order of additions explains.
::testing::AssertionResult alike(const torch::nn::Module& compiled, const torch::nn::Module& eager) {
  const c10::NoGradGuard no_grad;
  const auto close = [](const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-4, 1e-6); };
  const auto others = eager.named_parameters();
  for (const auto& parameter : compiled.named_parameters()) {
    const Tensor& other = others[parameter.key()];
    if (!close(*parameter, other)) return ::testing::AssertionFailure() << parameter.key() << " differs";
    if (parameter->grad().defined() != other.grad().defined()) {
      return ::testing::AssertionFailure() << parameter.key() << ": one has a gradient, the other none";
    }
    if (!other.grad().defined()) continue;
    if (parameter->grad().strides() != other.grad().strides() || parameter->grad().requires_grad()) {
      return ::testing::AssertionFailure() << parameter.key() << ".grad is of another kind";
    }
    if (!close(parameter->grad(), other.grad())) {
      return ::testing::AssertionFailure() << parameter.key() << ".grad differs";
    }
  }
  const auto buffers = eager.named_buffers();
  for (const auto& buffer : compiled.named_buffers()) {
    if (!close(*buffer, buffers[buffer.key()])) return ::testing::AssertionFailure() << buffer.key() << " differs";
  }
  return ::testing::AssertionSuccess();
}

torch::nn::Sequential mlp(at::Device device) {
  at::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Linear(6, 16), torch::nn::Tanh(), torch::nn::Linear(16, 2));
  model->to(device);
  return model;
}

TEST_P(Training, a_step_with_sgd_does_what_eager_does) {
  auto mine = mlp(GetParam().device), theirs = mlp(GetParam().device);
  torch::optim::SGD optimizer(mine->parameters(), 0.1), reference(theirs->parameters(), 0.1);
  const auto step = [](torch::nn::Sequential& model, torch::optim::Optimizer& sgd, const Tensor& x, const Tensor& y) {
    sgd.zero_grad();
    const Tensor loss = at::mse_loss(model->forward(x), y);
    loss.backward();
    sgd.step();
    return loss.detach();
  };
  auto fast = compile([&](const Tensor& x, const Tensor& y) { return step(mine, optimizer, x, y); }, options());
  for (int call = 0; call < 20; ++call) {
    const Tensor x = randn({8, 6}), y = randn({8, 2});
    ASSERT_TRUE(same(fast(x, y), step(theirs, reference, x, y))) << call;
    ASSERT_TRUE(alike(*mine, *theirs)) << call << "\n" << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(replays(fast.report()), 10) << fast.report();
}

/// Gradients of a layer taken inside, and nothing else.
struct Backward {
  torch::nn::Linear layer;
  Tensor operator()(const Tensor& x) {
    const Tensor loss = layer->forward(x).pow(2).mean();
    loss.backward();
    return loss.detach();
  }
};

TEST_P(Training, gradients_add_up_over_calls_and_are_fresh_after_zero_grad) {
  at::manual_seed(1);
  torch::nn::Linear mine(4, 2);
  at::manual_seed(1);
  torch::nn::Linear theirs(4, 2);
  mine->to(GetParam().device);
  theirs->to(GetParam().device);
  Backward backward{theirs};
  auto fast = compile(Backward{mine}, options());
  for (int call = 0; call < 24; ++call) {
    const Tensor x = randn({3, 4});
    const Tensor kept = mine->weight.grad();
    ASSERT_TRUE(same(fast(x), backward(x))) << call;
    ASSERT_TRUE(alike(*mine, *theirs)) << call << "\n" << fast.report();
    EXPECT_TRUE(!kept.defined() || mine->weight.grad().is_same(kept)) << "added to in place";
    if (call % 4 != 3) continue;
    mine->zero_grad();
    theirs->zero_grad();
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_P(Training, a_gradient_that_somebody_holds_is_added_to_all_the_same) {
  torch::nn::Linear layer(4, 2);
  layer->to(GetParam().device);
  auto fast = compile(Backward{layer}, options());
  const Tensor x = randn({3, 4});
  fast(x);
  const Tensor once = layer->weight.grad().clone();
  for (int call = 2; call < 12; ++call) {
    const Tensor held = layer->weight.grad();
    fast(x);
    ASSERT_TRUE(held.is_same(layer->weight.grad()));
    ASSERT_TRUE(at::allclose(held, once * call, 1e-4, 1e-5)) << call << "\n" << fast.report();
  }
}

TEST_P(Training, every_call_leaves_gradients_of_its_own) {
  torch::nn::Linear layer(4, 2);
  layer->to(GetParam().device);
  auto fast = compile(
      [&layer](const Tensor& x) {
        layer->zero_grad();
        layer->forward(x).pow(2).sum().backward();
        return x;
      },
      options());
  std::vector<Tensor> kept, copies;
  for (int call = 0; call < 6; ++call) {
    fast(randn({3, 4}));
    kept.push_back(layer->weight.grad());
    copies.push_back(layer->weight.grad().clone());
  }
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(kept[i], copies[i])) << i;
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GT(replays(fast.report()), 0) << fast.report();
}

TEST_P(Training, a_gradient_that_the_program_drops_is_dropped) {
  torch::nn::Linear layer(4, 2);
  layer->to(GetParam().device);
  auto fast = compile(
      [&layer](const Tensor& x) {
        layer->forward(x).pow(2).sum().backward();
        const Tensor norm = layer->weight.grad().norm();
        layer->zero_grad();
        return norm;
      },
      options());
  for (int call = 0; call < 10; ++call) {
    const Tensor x = randn({3, 4});
    const Tensor before =
        call % 2 == 0 ? at::zeros_like(layer->weight).detach() : at::ones_like(layer->weight).detach();
    if (call % 2 == 1) layer->weight.mutable_grad() = before.clone();
    const Tensor norm = fast(x);
    EXPECT_FALSE(layer->weight.grad().defined());
    layer->forward(x).pow(2).sum().backward();
    EXPECT_TRUE(at::allclose(norm, (before + layer->weight.grad()).norm())) << call;
    layer->zero_grad();
  }
  EXPECT_GT(replays(fast.report()), 0) << fast.report();
}

TEST_P(Training, an_argument_gets_its_gradient) {
  auto fast = compile(
      [](const Tensor& x) {
        const Tensor sum = (at::sin(x) * x).sum();
        sum.backward();
        return sum.detach();
      },
      options());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = randn({5}).requires_grad_();
    fast(x);
    ASSERT_TRUE(x.grad().defined());
    EXPECT_TRUE(same(x.grad(), (at::sin(x) + x * at::cos(x)).detach()));
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GT(replays(fast.report()), 0) << fast.report();
}

TEST_P(Training, a_gradient_that_keeps_its_own_history_stays_eager) {
  const Tensor weight = randn({4}).requires_grad_();
  auto fast = compile(
      [&weight](const Tensor& x) {
        (weight * weight * x).sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
        return x;
      },
      options());
  for (int call = 0; call < 4; ++call) {
    weight.mutable_grad().reset();
    fast(randn({4}));
    EXPECT_TRUE(weight.grad().requires_grad());
  }
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::needs_gradient);
}

TEST_P(Training, a_gradient_kept_in_a_captured_variable_stays_eager) {
  torch::nn::Linear layer(4, 2);
  layer->to(GetParam().device);
  Tensor kept;
  auto fast = compile(
      [&](const Tensor& x) {
        layer->zero_grad();
        layer->forward(x).sum().backward();
        kept = layer->weight.grad();
        return x;
      },
      options());
  for (int call = 0; call < 5; ++call) {
    fast(randn({3, 4}));
    EXPECT_TRUE(kept.is_same(layer->weight.grad())) << call;
  }
  EXPECT_EQ(replays(fast.report()), 0);
}

TEST_P(Training, a_backward_that_goes_on_outside_stays_eager) {
  const Tensor weight = randn({4}).requires_grad_();
  auto fast = compile(
      [](const Tensor& x) {
        (x * x).sum().backward();
        return x.detach();
      },
      options());
  for (int call = 0; call < 4; ++call) {
    weight.mutable_grad().reset();
    fast(weight * 2);
    EXPECT_TRUE(same(weight.grad(), (weight * 8).detach()));
  }
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::needs_gradient);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Training, ::testing::Values(Where{"cpu", at::kCPU, Mode::Default}),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Gpu, Training,
                         ::testing::Values(Where{"cuda", at::kCUDA, Mode::Default},
                                           Where{"cuda_graph", at::kCUDA, Mode::ReduceOverhead}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sinter::test
