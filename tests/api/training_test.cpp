#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <functional>

#include "training.h"

namespace sinter::test {
namespace {

torch::nn::Sequential convolutions(at::Device device) {
  at::manual_seed(4);
  torch::nn::Sequential model(torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 4, 3).padding(1).bias(false)),
                              torch::nn::BatchNorm2d(4), torch::nn::ReLU(), torch::nn::Flatten(),
                              torch::nn::Linear(4 * 6 * 6, 2));
  model->to(device);
  return model;
}

torch::nn::Sequential pooled_convolutions(at::Device device) {
  at::manual_seed(4);
  const auto convolution = [](int64_t in) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, 8, 3).padding(1).bias(false));
  };
  torch::nn::Sequential model(convolution(3), torch::nn::BatchNorm2d(8), torch::nn::ReLU(),
                              torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)), convolution(8),
                              torch::nn::BatchNorm2d(8), torch::nn::ReLU(), torch::nn::AvgPool2d(2),
                              torch::nn::Flatten(), torch::nn::Linear(8 * 2 * 2, 2));
  model->to(device);
  return model;
}

torch::nn::Sequential words(at::Device device) {
  at::manual_seed(5);
  torch::nn::Sequential model(torch::nn::Embedding(11, 8),
                              torch::nn::LayerNorm(torch::nn::LayerNormOptions(std::vector<int64_t>{8})),
                              torch::nn::Flatten(), torch::nn::Linear(5 * 8, 2));
  model->to(device);
  return model;
}

/// A model and its optimizer, trained by whole steps.
struct Trained {
  torch::nn::Sequential model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  bool set_to_none = true;

  Tensor operator()(const Tensor& x, const Tensor& y) {
    optimizer->zero_grad(set_to_none);
    const Tensor loss = at::mse_loss(model->forward(x), y);
    loss.backward();
    optimizer->step();
    return loss.detach();
  }
};

/// Both optimizers have counted the same steps and keep the same averages.
template <class ParamState>
::testing::AssertionResult same_averages(Trained& compiled, Trained& eager) {
  for (size_t i = 0; i < compiled.model->parameters().size(); ++i) {
    const auto of = [i](Trained& trained) -> ParamState& {
      auto* key = trained.model->parameters()[i].unsafeGetTensorImpl();
      return static_cast<ParamState&>(*trained.optimizer->state().at(key));
    };
    if (of(compiled).step() != of(eager).step()) return ::testing::AssertionFailure() << "steps of parameter " << i;
    if (!at::allclose(of(compiled).exp_avg(), of(eager).exp_avg(), 1e-4, 1e-6) ||
        !at::allclose(of(compiled).exp_avg_sq(), of(eager).exp_avg_sq(), 1e-4, 1e-7)) {
      return ::testing::AssertionFailure() << "averages of parameter " << i;
    }
  }
  return ::testing::AssertionSuccess();
}

struct OptimizerCase {
  const char* name;
  MakeOptimizer make;
};

const OptimizerCase optimizers[] = {
    {"sgd", [](const Parameters& p) { return made<torch::optim::SGD>(p, torch::optim::SGDOptions(0.05)); }},
    {"momentum",
     [](const Parameters& p) {
       return made<torch::optim::SGD>(p,
                                      torch::optim::SGDOptions(0.05).momentum(0.9).dampening(0.1).weight_decay(0.01));
     }},
    {"nesterov",
     [](const Parameters& p) {
       return made<torch::optim::SGD>(p, torch::optim::SGDOptions(0.05).momentum(0.9).nesterov(true));
     }},
    {"adam", [](const Parameters& p) { return made<torch::optim::Adam>(p, torch::optim::AdamOptions(0.01)); }},
    {"amsgrad",
     [](const Parameters& p) {
       return made<torch::optim::Adam>(p, torch::optim::AdamOptions(0.01).amsgrad(true).weight_decay(0.02));
     }},
    {"adamw",
     [](const Parameters& p) {
       return made<torch::optim::AdamW>(p, torch::optim::AdamWOptions(0.01).weight_decay(0.1));
     }},
    {"rmsprop",
     [](const Parameters& p) {
       return made<torch::optim::RMSprop>(p, torch::optim::RMSpropOptions(0.01).momentum(0.5).centered(true));
     }},
    {"adagrad", [](const Parameters& p) { return made<torch::optim::Adagrad>(p, torch::optim::AdagradOptions(0.05)); }},
};

/// Trains two copies side by side; halves the learning rate on the way.
class Twins {
 public:
  Twins(at::Device device, MakeModel model, MakeOptimizer optimizer, bool set_to_none = true)
      : mine{model(device), nullptr, set_to_none}, theirs{model(device), nullptr, set_to_none} {
    mine.optimizer = optimizer(mine.model->parameters());
    theirs.optimizer = optimizer(theirs.model->parameters());
  }

  /// `data` gives the input and the target of a step.
  Stats train(const Options& options, const std::function<std::pair<Tensor, Tensor>()>& data) {
    auto fast = compile([this](const Tensor& x, const Tensor& y) { return mine(x, y); }, options);
    for (int call = 0; call < 20; ++call) {
      const auto [x, y] = data();
      at::manual_seed(call);
      const Tensor loss = fast(x, y);
      at::manual_seed(call);
      const Tensor expected = theirs(x, y);
      EXPECT_TRUE(at::allclose(loss, expected, 1e-4, 1e-6)) << call << "\n" << fast.report();
      EXPECT_TRUE(alike(*mine.model, *theirs.model)) << call << "\n" << fast.report();
      if (::testing::Test::HasFailure()) break;
      if (call != 9) continue;
      for (Trained* trained : {&mine, &theirs}) {
        auto& settings = trained->optimizer->param_groups()[0].options();
        settings.set_lr(settings.get_lr() / 2);
      }
    }
    EXPECT_TRUE(unbroken(fast.report()));
    return fast.stats();
  }

  Trained mine, theirs;
};

TEST_P(Training, every_optimizer_does_what_eager_does) {
  for (const OptimizerCase& row : optimizers) {
    SCOPED_TRACE(row.name);
    Twins twins(GetParam().device, mlp, row.make);
    const Stats stats = twins.train(options(), [&] { return std::pair(randn({8, 6}), randn({8, 2})); });
    EXPECT_GE(stats.replayed, 12);
  }
}

TEST_P(Training, counters_and_averages_go_on) {
  Twins adam(GetParam().device, mlp, optimizers[3].make);
  adam.train(options(), [&] { return std::pair(randn({8, 6}), randn({8, 2})); });
  EXPECT_TRUE(same_averages<torch::optim::AdamParamState>(adam.mine, adam.theirs));
  Twins adamw(GetParam().device, mlp, optimizers[5].make);
  adamw.train(options(), [&] { return std::pair(randn({8, 6}), randn({8, 2})); });
  EXPECT_TRUE(same_averages<torch::optim::AdamWParamState>(adamw.mine, adamw.theirs));
}

TEST_P(Training, a_network_of_convolutions_and_batch_norm_learns_as_in_eager) {
  Twins twins(GetParam().device, convolutions, optimizers[3].make);
  const Stats stats = twins.train(options(), [&] { return std::pair(randn({4, 2, 6, 6}), randn({4, 2})); });
  EXPECT_GE(stats.replayed, 12);
}

TEST_P(Training, convolutions_and_pools_learn_as_in_eager_in_whatever_layout_they_run) {
  const FullPrecision no_tf32;
  Twins twins(GetParam().device, pooled_convolutions, optimizers[1].make);
  const Stats stats = twins.train(options(), [&] { return std::pair(randn({4, 3, 8, 8}), randn({4, 2})); });
  EXPECT_GE(stats.replayed, 12);
}

TEST_P(Training, an_embedding_and_layer_norm_learn_as_in_eager) {
  Twins twins(GetParam().device, words, optimizers[5].make);
  const Stats stats = twins.train(options(), [&] {
    const Tensor x = at::randint(11, {4, 5}, at::TensorOptions(at::kLong)).to(GetParam().device);
    return std::pair(x, randn({4, 2}));
  });
  EXPECT_GE(stats.replayed, 12);
}

TEST_P(Training, gradients_set_to_zero_in_place_are_reused) {
  Twins twins(GetParam().device, mlp, optimizers[3].make, /*set_to_none=*/false);
  const Stats stats = twins.train(options(), [&] { return std::pair(randn({8, 6}), randn({8, 2})); });
  EXPECT_GE(stats.replayed, 12);
}

TEST_P(Training, another_option_than_the_learning_rate_is_seen) {
  Twins twins(GetParam().device, mlp, optimizers[3].make);
  twins.train(options(), [&] { return std::pair(randn({8, 6}), randn({8, 2})); });
  auto fast = compile([&](const Tensor& x, const Tensor& y) { return twins.mine(x, y); }, options());
  for (int call = 0; call < 12; ++call) {
    const Tensor x = randn({8, 6}), y = randn({8, 2});
    fast(x, y);
    twins.theirs(x, y);
    ASSERT_TRUE(alike(*twins.mine.model, *twins.theirs.model)) << call << "\n" << fast.report();
    if (call != 5) continue;
    for (Trained* trained : {&twins.mine, &twins.theirs}) {
      static_cast<torch::optim::AdamOptions&>(trained->optimizer->param_groups()[0].options()).weight_decay(0.1);
    }
  }
  EXPECT_GE(fast.stats().replayed, 7) << fast.report();
}

TEST_P(Training, a_scheduler_stepped_inside_goes_on) {
  Twins twins(GetParam().device, mlp, optimizers[0].make);
  torch::optim::StepLR mine(*twins.mine.optimizer, 2, 0.5), theirs(*twins.theirs.optimizer, 2, 0.5);
  auto fast = compile(
      [&](const Tensor& x, const Tensor& y) {
        const Tensor loss = twins.mine(x, y);
        mine.step();
        return loss;
      },
      options());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = randn({8, 6}), y = randn({8, 2});
    fast(x, y);
    twins.theirs(x, y);
    theirs.step();
    ASSERT_TRUE(alike(*twins.mine.model, *twins.theirs.model)) << call << "\n" << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
}

TEST_P(Training, a_step_may_return_nothing) {
  Twins twins(GetParam().device, mlp, optimizers[4].make);
  auto fast = compile([&](const Tensor& x, const Tensor& y) { (void)twins.mine(x, y); }, options());
  for (int call = 0; call < 8; ++call) {
    const Tensor x = randn({8, 6}), y = randn({8, 2});
    fast(x, y);
    twins.theirs(x, y);
    ASSERT_TRUE(alike(*twins.mine.model, *twins.theirs.model)) << call << "\n" << fast.report();
  }
  EXPECT_GT(fast.stats().replayed, 2) << fast.report();
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
  EXPECT_GT(fast.stats().replayed, 0) << fast.report();
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
  EXPECT_GT(fast.stats().replayed, 0) << fast.report();
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
  EXPECT_GT(fast.stats().replayed, 0) << fast.report();
}

TEST_P(Training, a_gradient_may_keep_its_own_history) {
  const Tensor weight = randn({4}).requires_grad_();
  auto fast = compile(
      [&weight](const Tensor& x) {
        (weight * weight * x).sum().backward({}, /*retain_graph=*/true, /*create_graph=*/true);
        return x;
      },
      options());
  for (int call = 0; call < 4; ++call) {
    weight.mutable_grad().reset();
    const Tensor x = randn({4});
    fast(x);
    EXPECT_TRUE(weight.grad().requires_grad());
    EXPECT_TRUE(same(weight.grad().detach(), (weight * x * 2).detach()));
    const Tensor second = torch::autograd::grad({weight.grad().sum()}, {weight}).front();
    EXPECT_TRUE(same(second, x * 2));
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_P(Training, a_gradient_may_be_kept_in_a_captured_variable) {
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
    const Tensor x = randn({3, 4});
    fast(x);
    EXPECT_TRUE(same(kept, x.sum(0).expand({2, 4}).contiguous())) << call;
    EXPECT_TRUE(kept.is_same(layer->weight.grad())) << call;
  }
  EXPECT_GE(fast.stats().replayed, 2) << fast.report();
}

TEST_P(Training, a_backward_may_go_on_outside) {
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
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 2) << fast.report();
}

INSTANTIATE_TEST_SUITE_P(Cpu, Training, ::testing::Values(Where{"cpu", at::kCPU, Mode::Default}), name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, Training,
                         ::testing::Values(Where{"cuda", at::kCUDA, Mode::Default},
                                           Where{"cuda_graph", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

}  // namespace
}  // namespace sinter::test
