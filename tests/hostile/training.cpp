#include "groups.h"
#include "programs.h"

/// Gradients: calls whose result is differentiated outside, and whole training steps inside.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

/// oneDNN's layer on the CPU keeps a workspace for backward, in grad mode alone.
void a_training_step_of_an_lstm(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::LSTM(torch::nn::LSTMOptions(3, 4).num_layers(2).batch_first(true)));
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  auto f = s.compile([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = std::get<0>(layer(x)).square().mean();
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 5, 3}));
}

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

/// Steps of one optimizer over a small network, forward to update inside the callable.
template <class Optimizer, class Settings>
void train(Session& s, const Settings& settings, Clipping clipping = Clipping::none) {
  const at::AutoGradMode grad(true);
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
  s.adopt(model);
  Optimizer optimizer(model->parameters(), settings);
  auto f = s.compile([&](const Tensor& x, const Tensor& target) {
    optimizer.zero_grad();
    const Tensor loss = at::mse_loss(model->forward(x), target);
    loss.backward();
    if (clipping == Clipping::by_norm) torch::nn::utils::clip_grad_norm_(model->parameters(), 0.5);
    optimizer.step();
    return loss.detach();
  });
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
  train<torch::optim::SGD>(s, torch::optim::SGDOptions(0.1), Clipping::by_norm);
}

/// Steps over batches, some of which overflow what they are multiplied with.
template <class Body>
void steps_over_batches(Session& s, const Body& body) {
  auto f = s.compile(body);
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
  steps_over_batches(s, body);
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
  steps_over_batches(s, body);
  s.show("scale", scale);
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
  auto f = s.compile(body);
  for (int round = 0; round < 5; ++round) {
    {
      const at::AutoGradMode grad(true);
      f(s.randn({3, 4}), true);
    }
    f(s.randn({3, 4}), false);
  }
}

/// Steps whose gradients a hook of the caller changes for some calls.
void a_hook_that_comes_and_goes(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::Linear(4, 1));
  torch::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.05));
  const auto body = [&](const Tensor& x, const Tensor& target) {
    optimizer.zero_grad();
    const Tensor loss = at::mse_loss(layer->forward(x), target);
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  auto f = s.compile(body);
  unsigned hook = 0;
  for (int call = 0; call < 15; ++call) {
    if (call == 5) hook = layer->weight.register_hook([](const Tensor& gradient) { return gradient * 2; });
    if (call == 10) layer->weight.remove_hook(hook);
    f(s.randn({8, 4}), s.randn({8, 1}));
  }
}

void a_hook_while_gradients_are_asked_for(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::Linear(4, 1));
  auto f = s.compile([&](const Tensor& x) {
    const Tensor loss = layer->forward(x).pow(2).sum();
    return torch::autograd::grad({loss}, {layer->weight, layer->bias})[0];
  });
  for (int call = 0; call < 10; ++call) {
    if (call == 5) layer->weight.register_hook([](const Tensor& gradient) { return gradient + 1; });
    f(s.randn({8, 4}));
  }
}

void a_hook_on_an_argument(Session& s) {
  const at::AutoGradMode grad(true);
  auto f = s.compile([](const Tensor& x) {
    at::tanh(x).sum().backward();
    return x.grad() * 2;
  });
  for (int call = 0; call < 10; ++call) {
    const Tensor x = s.randn({4}).requires_grad_();
    if (call > 4 && call < 8) x.register_hook([](const Tensor& gradient) { return gradient * 3; });
    f(x);
    s.show("gradient", x.grad());
  }
}

void a_gradient_penalty(Session& s) {
  const at::AutoGradMode grad(true);
  torch::nn::Sequential model(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
  s.adopt(model);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05));
  const auto body = [&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor point = x.detach().clone().requires_grad_();
    const Tensor y = model->forward(point).sum();
    const Tensor slope = torch::autograd::grad({y}, {point}, {}, true, true)[0];
    const Tensor loss = (slope.pow(2).sum(1).add(1e-6).sqrt() - 1).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  auto f = s.compile(body);
  for (int call = 0; call < 8; ++call) f(s.randn({8, 4}));
}

/// y = x * factor, whose gradient is clamped.
struct Scale : torch::autograd::Function<Scale> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, double factor) {
    context->save_for_backward({x});
    context->saved_data["factor"] = factor;
    return x * factor;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const Tensor x = context->get_saved_variables()[0];
    const double factor = context->saved_data["factor"].toDouble();
    return {at::clamp(gradients[0] * factor, -0.1, 0.1) * at::sign(x), Tensor()};
  }
};

void a_function_with_a_gradient_of_its_own(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::Linear(4, 1));
  torch::optim::SGD optimizer(layer->parameters(), torch::optim::SGDOptions(0.05));
  const auto body = [&](const Tensor& x, double factor) {
    optimizer.zero_grad();
    const Tensor loss = Scale::apply(layer->forward(x), factor).sum();
    loss.backward();
    optimizer.step();
    return loss.detach();
  };
  auto f = s.compile(body);
  for (int call = 0; call < 12; ++call) f(s.randn({8, 4}), call % 2 == 0 ? 2.0 : 3.0);
}

void a_gradient_kept_of_an_intermediate(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(torch::nn::Linear(4, 2));
  auto f = s.compile([&](const Tensor& x) {
    const Tensor hidden = layer->forward(x);
    hidden.retain_grad();
    hidden.register_hook([](const Tensor& gradient) { return gradient * 0.5; });
    hidden.pow(2).sum().backward();
    return hidden.grad() * 1;
  });
  for (int call = 0; call < 6; ++call) {
    f(s.randn({3, 4}));
    layer->zero_grad();
  }
}

const Program programs[] = {
    {"a_result_differentiated_outside", a_result_differentiated_outside},
    {"the_gradient_of_an_input", the_gradient_of_an_input},
    {"a_training_step_with_sgd", a_training_step_with_sgd},
    {"a_training_step_with_adam", a_training_step_with_adam},
    {"a_training_step_with_adamw", a_training_step_with_adamw},
    {"a_training_step_of_an_lstm", a_training_step_of_an_lstm},
    {"a_training_step_with_clipping", a_training_step_with_clipping},
    {"a_loss_read_and_compared", a_loss_read_and_compared},
    {"a_scaler_that_skips_steps", a_scaler_that_skips_steps},
    {"gradients_that_accumulate", gradients_that_accumulate},
    {"gradients_taken_inside", gradients_taken_inside},
    {"a_step_alternated_with_evaluation", a_step_alternated_with_evaluation},
    {"a_hook_that_comes_and_goes", a_hook_that_comes_and_goes},
    {"a_hook_while_gradients_are_asked_for", a_hook_while_gradients_are_asked_for},
    {"a_hook_on_an_argument", a_hook_on_an_argument},
    {"a_gradient_penalty", a_gradient_penalty},
    {"a_function_with_a_gradient_of_its_own", a_function_with_a_gradient_of_its_own},
    {"a_gradient_kept_of_an_intermediate", a_gradient_kept_of_an_intermediate},
};

}  // namespace

std::span<const Program> training_programs() { return programs; }

}  // namespace sinter::test::hostile
