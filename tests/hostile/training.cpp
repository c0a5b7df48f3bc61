#include "groups.h"
#include "programs.h"

/// Gradients: calls whose result is differentiated outside, and whole training steps inside.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

void a_result_differentiated_outside(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::Linear(4, 2));
  auto f = s.compile(layer);
  for (int call = 0; call < 4; ++call) {
    const auto y = f(s.randn({3, 4}));
    if (y) y->pow(2).sum().backward();
  }
  s.show("weight gradient", layer->weight.grad());
}

void the_gradient_of_an_input(Session& s) {
  const at::AutoGradMode grad(true);
  auto f = s.compile([](const Tensor& x) { return (at::sin(x) * x).sum(); });
  for (int call = 0; call < 4; ++call) {
    const Tensor x = s.randn({4}).requires_grad_();
    const auto y = f(x);
    if (y) y->backward();
    s.show("gradient", x.grad());
  }
}

enum class Clipping { none, by_norm };
enum class Named { yes, no };

/// Steps of one optimizer over a small network, forward to update inside the callable.
template <class Optimizer, class Settings>
void train(Session& s, const Settings& settings, Named named = Named::yes, Clipping clipping = Clipping::none) {
  const at::AutoGradMode grad(true);
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
  s.adopt(model);
  Optimizer optimizer(model->parameters(), settings);
  Options options;
  if (named == Named::yes) options.optimizers = {&optimizer};
  auto f = s.compile(
      [&](const Tensor& x, const Tensor& target) {
        optimizer.zero_grad();
        const Tensor loss = at::mse_loss(model->forward(x), target);
        loss.backward();
        if (clipping == Clipping::by_norm) torch::nn::utils::clip_grad_norm_(model->parameters(), 0.5);
        optimizer.step();
        return loss.detach();
      },
      options);
  for (int call = 0; call < 8; ++call) {
    f(s.randn({8, 4}), s.randn({8, 1}));
    auto& group = optimizer.param_groups()[0].options();
    if (call == 4) group.set_lr(group.get_lr() * 0.5);
  }
}

void a_training_step_with_sgd(Session& s) { train<torch::optim::SGD>(s, torch::optim::SGDOptions(0.1).momentum(0.9)); }

void a_training_step_with_adam(Session& s) { train<torch::optim::Adam>(s, torch::optim::AdamOptions(0.01)); }

void a_training_step_with_adamw(Session& s) { train<torch::optim::AdamW>(s, torch::optim::AdamWOptions(0.01)); }

void a_training_step_with_clipping(Session& s) {
  train<torch::optim::SGD>(s, torch::optim::SGDOptions(0.1), Named::yes, Clipping::by_norm);
}

/// Steps over batches, some of which overflow what they are multiplied with.
template <class Body>
void steps_over_batches(Session& s, const Body& body, torch::optim::Optimizer& optimizer) {
  auto f = s.compile(body, {.optimizers = {&optimizer}});
  for (int call = 0; call < 24; ++call) {
    const double size = call % 4 == 3 ? std::numeric_limits<double>::infinity() : 1 + call % 3;
    f(s.randn({8, 4}) * size, s.randn({8, 1}));
  }
}

void a_loss_read_and_compared(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::Linear(4, 1));
  torch::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.05));
  const auto body = [&](const Tensor& x, const Tensor& target) {
    optimizer.zero_grad();
    const Tensor loss = at::mse_loss(layer->forward(x), target);
    const double value = loss.item<double>();
    if (!std::isfinite(value)) return loss.detach();
    loss.backward();
    if (value > 2) torch::nn::utils::clip_grad_value_(layer->parameters(), 0.5);
    optimizer.step();
    return loss.detach();
  };
  steps_over_batches(s, body, optimizer);
}

void a_scaler_that_skips_steps(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::Linear(4, 1));
  torch::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.05));
  const at::TensorOptions on(s.device());
  Tensor scale = at::full({}, 1024.0, on), growth = at::zeros({}, on.dtype(at::kInt));
  const auto body = [&](const Tensor& x, const Tensor& target) {
    optimizer.zero_grad();
    const Tensor loss = at::mse_loss(layer->forward(x), target);
    (loss * scale).backward();
    std::vector<Tensor> gradients;
    for (const Tensor& parameter : layer->parameters()) gradients.push_back(parameter.grad());
    Tensor found = at::zeros({}, on);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, scale.reciprocal());
    if (found.item<float>() == 0) optimizer.step();
    at::_amp_update_scale_(scale, growth, found, 2.0, 0.5, 2);
    return loss.detach();
  };
  steps_over_batches(s, body, optimizer);
  s.show("scale", scale);
}

void a_step_of_an_optimizer_without_a_name(Session& s) {
  train<torch::optim::SGD>(s, torch::optim::SGDOptions(0.1), Named::no);
}

void gradients_that_accumulate(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::Linear(4, 2));
  auto f = s.compile([&layer](const Tensor& x) {
    const Tensor loss = layer->forward(x).pow(2).mean();
    loss.backward();
    return loss.detach();
  });
  for (int call = 0; call < 5; ++call) {
    f(s.randn({3, 4}));
    if (call == 2) layer->zero_grad();
  }
}

void gradients_taken_inside(Session& s) {
  auto f = s.compile([](const Tensor& x) {
    const at::AutoGradMode grad(true);
    const Tensor leaf = x.detach().requires_grad_();
    const Tensor y = (at::tanh(leaf) * leaf).sum();
    y.backward();
    return leaf.grad();
  });
  for (int call = 0; call < 5; ++call) f(s.randn({4}));
}

void a_step_alternated_with_evaluation(Session& s) {
  auto layer = s.adopt(torch::nn::Linear(4, 1));
  torch::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.05));
  const auto body = [&](const Tensor& x, bool training) {
    if (!training) return layer->forward(x);
    optimizer.zero_grad();
    const Tensor loss = layer->forward(x).pow(2).sum();
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  auto f = s.compile(body, {.optimizers = {&optimizer}});
  for (int round = 0; round < 5; ++round) {
    {
      const at::AutoGradMode grad(true);
      f(s.randn({3, 4}), true);
    }
    f(s.randn({3, 4}), false);
  }
}

const std::vector<BreakCode> gradient{BreakCode::needs_gradient};
/// The first step of an optimizer that keeps state makes it.
const Expectation after_the_first_step{{BreakCode::state_mutation}, 2, 4};

const Program programs[] = {
    {"a_result_differentiated_outside", a_result_differentiated_outside, runs_eagerly(gradient)},
    {"the_gradient_of_an_input", the_gradient_of_an_input, runs_eagerly(gradient)},
    {"a_training_step_with_sgd", a_training_step_with_sgd, after_the_first_step},
    {"a_training_step_with_adam", a_training_step_with_adam, after_the_first_step},
    {"a_training_step_with_adamw", a_training_step_with_adamw, after_the_first_step},
    {"a_training_step_with_clipping", a_training_step_with_clipping, replays(2, 6)},
    {"a_loss_read_and_compared", a_loss_read_and_compared, replays(2, 12)},
    {"a_scaler_that_skips_steps", a_scaler_that_skips_steps, replays(2, 5)},
    {"a_step_of_an_optimizer_without_a_name", a_step_of_an_optimizer_without_a_name,
     runs_eagerly({BreakCode::unstable})},
    {"gradients_that_accumulate", gradients_that_accumulate, replays(2, 5)},
    {"gradients_taken_inside", gradients_taken_inside, replays()},
    {"a_step_alternated_with_evaluation", a_step_alternated_with_evaluation, replays(3, 6)},
};

}  // namespace

std::span<const Program> training_programs() { return programs; }

}  // namespace sinter::test::hostile
