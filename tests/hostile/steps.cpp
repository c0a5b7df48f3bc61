#include <c10/util/Exception.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/optim/schedulers/step_lr.h>

#include <optional>

#include "groups.h"
#include "programs.h"

/// Parts of training steps compiled alone, steps whose parts come and go, and what a step asks of its gradients.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

std::vector<Tensor> parameters_of(const nn::Linear& first, const nn::Linear& second) {
  std::vector<Tensor> all = first->parameters();
  for (const Tensor& parameter : second->parameters()) all.push_back(parameter);
  return all;
}

/// Every third iteration leaves the second layer without gradients.
template <class Optimizer, class Settings>
void step_alone(Session& s, const Settings& settings) {
  const at::AutoGradMode grad(true);
  auto first = s.adopt(nn::Linear(4, 3));
  auto second = s.adopt(nn::Linear(4, 3));
  Optimizer optimizer(parameters_of(first, second), settings);
  auto f = s.compile([&] { optimizer.step(); }, {.modules = {{"first", first.ptr()}, {"second", second.ptr()}}});
  for (int call = 0; call < 18; ++call) {
    optimizer.zero_grad();
    const Tensor x = s.randn({5, 4});
    Tensor loss = first->forward(x).sum();
    if (call % 3 != 2) loss = loss + second->forward(x).pow(2).sum();
    loss.backward();
    f();
  }
}

void a_step_alone_while_some_gradients_are_missing(Session& s) {
  step_alone<torch::optim::SGD>(s, torch::optim::SGDOptions(0.1).momentum(0.9));
}

void a_step_of_adam_alone_while_some_gradients_are_missing(Session& s) {
  step_alone<torch::optim::Adam>(s, torch::optim::AdamOptions(0.01));
}

void clipping_alone(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(4, 3));
  auto f = s.compile([&] { return nn::utils::clip_grad_norm_(layer->parameters(), 0.5); },
                     {.modules = {{"layer", layer.ptr()}}});
  for (int call = 0; call < 12; ++call) {
    layer->zero_grad();
    (layer->forward(s.randn({5, 4})) * 0.02 * (1 + call % 4)).pow(2).sum().backward();
    f();
  }
}

/// Forward and backward inside, the update outside; the two networks are frozen in turns.
void a_discriminator_frozen_in_turns(Session& s) {
  const at::AutoGradMode grad(true);
  auto generator = s.adopt(nn::Linear(4, 4));
  auto discriminator = s.adopt(nn::Linear(4, 1));
  torch::optim::SGD makes(generator->parameters(), 0.1);
  torch::optim::SGD judges(discriminator->parameters(), 0.1);
  auto f = s.compile([&](const Tensor& x) {
    makes.zero_grad();
    judges.zero_grad();
    const Tensor loss = discriminator->forward(at::tanh(generator->forward(x))).mean();
    loss.backward();
    return loss.detach();
  });
  for (int call = 0; call < 16; ++call) {
    const bool judging = call % 2 == 1;
    for (auto& parameter : discriminator->parameters()) parameter.set_requires_grad(judging);
    for (auto& parameter : generator->parameters()) parameter.set_requires_grad(!judging || call % 4 == 1);
    f(s.randn({3, 4}));
    if (judging) {
      judges.step();
    } else {
      makes.step();
    }
  }
}

/// The factor of the write is the learning rate with its sign changed, and no learning rate.
void a_write_scaled_like_the_learning_rate(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(4, 4));
  Tensor bias = at::zeros({4}, s.options());
  s.watch("bias", &bias);
  torch::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.125));
  auto f = s.compile([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = layer->forward(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    const c10::NoGradGuard no_grad;
    bias.add_(x.mean(0), -0.125);
    return loss.detach();
  });
  for (int call = 0; call < 16; ++call) {
    auto& settings = optimizer.param_groups()[0].options();
    if (call % 5 == 4) settings.set_lr(settings.get_lr() * 0.5);
    f(s.randn({3, 4}));
  }
}

void a_schedule_stepped_inside(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(4, 4));
  torch::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.125));
  torch::optim::StepLR schedule(optimizer, 3, 0.5);
  auto f = s.compile([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = layer->forward(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    schedule.step();
    return loss.detach();
  });
  for (int call = 0; call < 16; ++call) {
    f(s.randn({3, 4}));
    s.show("rate", std::to_string(optimizer.param_groups()[0].options().get_lr()));
  }
}

/// The first gradient after each reset is used as it is, later ones are averaged.
void a_gradient_that_is_asked_whether_it_is_there(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(4, 1));
  auto f = s.compile([&](const Tensor& x) {
    const bool was_there = layer->weight.grad().defined();
    layer->forward(x).sum().backward();
    const Tensor mean = was_there ? layer->weight.grad() * 0.5 : layer->weight.grad() + 0;
    if (was_there && mean.abs().max().item<float>() > 2) layer->zero_grad();
    return mean;
  });
  for (int call = 0; call < 20; ++call) f(s.randn({3, 4}));
}

/// LibTorch warns of what it found before it throws.
struct Silence : c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

void anomalies_looked_for_in_some_calls(Session& s) {
  const at::AutoGradMode grad(true);
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silence);
  auto layer = s.adopt(nn::Linear(4, 1));
  auto f = s.compile([&](const Tensor& x) {
    layer->zero_grad();
    const Tensor loss = layer->forward(x).abs().sqrt().sum();
    loss.backward();
    return loss.detach();
  });
  for (int call = 0; call < 12; ++call) {
    std::optional<torch::autograd::DetectAnomalyGuard> guard;
    if (call % 3 == 2) guard.emplace();
    f(call == 8 ? at::full({3, 4}, std::nan(""), s.options()) : s.randn({3, 4}));
  }
}

void a_second_derivative(Session& s) {
  const at::AutoGradMode grad(true);
  const Tensor weight = s.randn({4}).requires_grad_();
  auto f = s.compile([&](const Tensor& x) {
    const Tensor y = (weight * x).pow(3).sum();
    const Tensor first = torch::autograd::grad({y}, {weight}, {}, true, true)[0];
    return torch::autograd::grad({first.pow(2).sum()}, {weight})[0];
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4}));
}

const Program programs[] = {
    {"a_step_alone_while_some_gradients_are_missing", a_step_alone_while_some_gradients_are_missing},
    {"a_step_of_adam_alone_while_some_gradients_are_missing", a_step_of_adam_alone_while_some_gradients_are_missing},
    {"clipping_alone", clipping_alone},
    {"a_discriminator_frozen_in_turns", a_discriminator_frozen_in_turns},
    {"a_write_scaled_like_the_learning_rate", a_write_scaled_like_the_learning_rate},
    {"a_schedule_stepped_inside", a_schedule_stepped_inside},
    {"a_gradient_that_is_asked_whether_it_is_there", a_gradient_that_is_asked_whether_it_is_there},
    {"anomalies_looked_for_in_some_calls", anomalies_looked_for_in_some_calls},
    {"a_second_derivative", a_second_derivative},
};

}  // namespace

std::span<const Program> step_programs() { return programs; }

}  // namespace sinter::test::hostile
