#include <torch/optim/adagrad.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/step_lr.h>

#include "groups.h"
#include "programs.h"

/// Training as it is written: other optimizers, averages of weights, steps within steps, losses over pairs.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

nn::Sequential small_net(int64_t in, int64_t out) {
  return nn::Sequential(nn::Linear(in, 6), nn::GELU(), nn::LayerNorm(nn::LayerNormOptions({6})), nn::Linear(6, out));
}

template <class Optimizer>
void train_with(Session& s, const std::function<Optimizer(std::vector<Tensor>)>& make) {
  const at::AutoGradMode grad(true);
  auto net = s.adopt(small_net(3, 2));
  Optimizer optimizer = make(net->parameters());
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = at::mse_loss(net->forward(x), y);
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 3}), s.randn({4, 2}));
}

void a_step_of_rmsprop_with_everything(Session& s) {
  train_with<torch::optim::RMSprop>(s, [](std::vector<Tensor> all) {
    return torch::optim::RMSprop(all,
                                 torch::optim::RMSpropOptions(0.01).momentum(0.9).centered(true).weight_decay(0.01));
  });
}

void a_step_of_adagrad(Session& s) {
  train_with<torch::optim::Adagrad>(s, [](std::vector<Tensor> all) {
    return torch::optim::Adagrad(all, torch::optim::AdagradOptions(0.05).lr_decay(0.01));
  });
}

void a_step_of_adam_with_amsgrad(Session& s) {
  train_with<torch::optim::Adam>(s, [](std::vector<Tensor> all) {
    return torch::optim::Adam(all, torch::optim::AdamOptions(0.01).amsgrad(true).weight_decay(0.1));
  });
}

void a_step_of_lbfgs(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(3, 1));
  torch::optim::LBFGS optimizer(layer->parameters(), torch::optim::LBFGSOptions(0.5).max_iter(2).history_size(3));
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    const auto closure = [&] {
      optimizer.zero_grad();
      const Tensor loss = at::mse_loss(layer->forward(x).squeeze(1), y);
      loss.backward();
      return loss;
    };
    return optimizer.step(closure).detach();
  });
  const Tensor x = s.randn({8, 3}), y = s.randn({8});
  for (int call = 0; call < 8; ++call) f(x, y);
}

/// Signs of a momentum, and weights that follow slowly.
void an_optimizer_of_ones_own_and_an_average(Session& s) {
  const at::AutoGradMode grad(true);
  auto net = s.adopt(small_net(3, 2));
  std::vector<Tensor> momentum, average;
  for (const auto& p : net->parameters()) {
    momentum.push_back(at::zeros_like(p.detach()));
    average.push_back(p.detach().clone());
  }
  int64_t step = 0;
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    net->zero_grad();
    const Tensor loss = at::huber_loss(net->forward(x), y);
    loss.backward();
    const at::NoGradGuard none;
    ++step;
    const double rate = 0.01 * 0.5 * (1 + std::cos(3.14159 * static_cast<double>(step) / 20));
    const double follow = std::min(0.99, (1.0 + static_cast<double>(step)) / (10.0 + static_cast<double>(step)));
    auto parameters = net->parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Tensor& g = parameters[i].grad();
      parameters[i].mul_(1 - 0.1 * rate).add_(at::sign(momentum[i].mul(0.9).add(g, 0.1)), -rate);
      momentum[i].lerp_(g, 0.01);
      average[i].mul_(follow).add_(parameters[i], 1 - follow);
    }
    return loss.detach();
  });
  for (int call = 0; call < 10; ++call) f(s.randn({4, 3}), s.randn({4, 2}));
  for (const Tensor& a : average) s.show("average", a);
}

void groups_with_rates_of_their_own(Session& s) {
  const at::AutoGradMode grad(true);
  auto first = s.adopt(nn::Linear(3, 4));
  auto second = s.adopt(nn::Linear(4, 2));
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(first->parameters(), std::make_unique<torch::optim::SGDOptions>(0.1));
  groups.emplace_back(second->parameters(), std::make_unique<torch::optim::SGDOptions>(0.01));
  torch::optim::SGD optimizer(groups, torch::optim::SGDOptions(0.1));
  torch::optim::StepLR schedule(optimizer, 2, 0.5);
  auto f = s.compile([&](const Tensor& x) {
    Tensor total = at::zeros({}, x.options());
    optimizer.zero_grad();
    for (const Tensor& part : x.chunk(2)) {
      const Tensor loss = second->forward(at::relu(first->forward(part))).square().mean() / 2;
      loss.backward();
      total += loss.detach();
    }
    nn::utils::clip_grad_value_(first->parameters(), 0.05);
    optimizer.step();
    schedule.step();
    return total;
  });
  for (int call = 0; call < 9; ++call) f(s.randn({6, 3}));
}

/// Computes the layer again in the backward pass instead of keeping what it made.
struct Again : torch::autograd::Function<Again> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, const Tensor& w) {
    context->save_for_backward({x, w});
    return at::gelu(x.mm(w));
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto saved = context->get_saved_variables();
    const at::AutoGradMode grad(true);
    const Tensor x = saved[0].detach().requires_grad_(), w = saved[1].detach().requires_grad_();
    const Tensor y = at::gelu(x.mm(w));
    return torch::autograd::grad({y}, {x, w}, {grads[0]});
  }
};

void a_layer_computed_again(Session& s) {
  const at::AutoGradMode grad(true);
  Tensor w = s.randn({4, 4}).requires_grad_();
  s.watch("w", &w);
  auto f = s.compile([&](const Tensor& x) {
    w.mutable_grad() = Tensor();
    const Tensor loss = Again::apply(Again::apply(x, w), w).square().sum();
    loss.backward();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({3, 4}));
}

void a_critic_with_a_penalty(Session& s) {
  const at::AutoGradMode grad(true);
  auto maker = s.adopt(nn::Linear(2, 3));
  auto critic = s.adopt(small_net(3, 1));
  torch::optim::Adam makes(maker->parameters(), torch::optim::AdamOptions(0.01).betas({0.0, 0.9}));
  torch::optim::Adam judges(critic->parameters(), torch::optim::AdamOptions(0.01).betas({0.0, 0.9}));
  auto f = s.compile([&](const Tensor& real) {
    const Tensor fake = maker->forward(at::randn({real.size(0), 2}, real.options()));
    const Tensor share = at::rand({real.size(0), 1}, real.options());
    const Tensor between = (share * real + (1 - share) * fake.detach()).requires_grad_();
    const Tensor slope = torch::autograd::grad({critic->forward(between).sum()}, {between}, {}, true, true)[0];
    const Tensor penalty = (slope.norm(2, {1}) - 1).square().mean();
    judges.zero_grad();
    const Tensor loss = critic->forward(fake.detach()).mean() - critic->forward(real).mean() + 10 * penalty;
    loss.backward();
    judges.step();
    makes.zero_grad();
    (-critic->forward(fake).mean()).backward();
    makes.step();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 3}));
}

/// A step to where the loss is worst nearby, the gradient there, and back.
void a_step_by_the_worst_neighbour(Session& s) {
  const at::AutoGradMode grad(true);
  auto net = s.adopt(small_net(3, 2));
  torch::optim::SGD optimizer(net->parameters(), 0.05);
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    at::mse_loss(net->forward(x), y).backward();
    std::vector<Tensor> norms, moves;
    for (auto& p : net->parameters()) norms.push_back(p.grad().norm());
    const Tensor total = at::stack(norms).norm() + 1e-12;
    {
      const at::NoGradGuard none;
      for (auto& p : net->parameters()) {
        moves.push_back(p.grad() * (0.05 / total));
        p.add_(moves.back());
      }
    }
    optimizer.zero_grad();
    const Tensor loss = at::mse_loss(net->forward(x), y);
    loss.backward();
    {
      const at::NoGradGuard none;
      auto all = net->parameters();
      for (size_t i = 0; i < all.size(); ++i) all[i].sub_(moves[i]);
    }
    optimizer.step();
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 3}), s.randn({4, 2}));
}

void a_step_within_a_step(Session& s) {
  const at::AutoGradMode grad(true);
  Tensor w = s.randn({3, 2}).requires_grad_();
  s.watch("w", &w);
  auto f = s.compile([&](const Tensor& x, const Tensor& y) {
    const Tensor inner = at::mse_loss(x.mm(w), y);
    const Tensor fast = w - 0.1 * torch::autograd::grad({inner}, {w}, {}, true, true)[0];
    const Tensor outer = at::mse_loss(x.flip(0).mm(fast), y);
    const Tensor slope = torch::autograd::grad({outer}, {w})[0];
    const at::NoGradGuard none;
    w.sub_(slope, 0.1);
    return outer.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({4, 3}), s.randn({4, 2}));
}

void pairs_that_belong_together(Session& s) {
  const at::AutoGradMode grad(true);
  auto left = s.adopt(nn::Linear(4, 3));
  auto right = s.adopt(nn::Linear(5, 3));
  Tensor scale = at::zeros({}, s.options()).requires_grad_();
  s.watch("scale", &scale);
  auto all = left->parameters();
  for (const auto& p : right->parameters()) all.push_back(p);
  all.push_back(scale);
  torch::optim::AdamW optimizer(all, 0.01);
  auto f = s.compile([&](const Tensor& a, const Tensor& b) {
    namespace F = torch::nn::functional;
    optimizer.zero_grad();
    const Tensor logits = F::normalize(left->forward(a)).mm(F::normalize(right->forward(b)).t()) * scale.exp();
    const Tensor who = at::arange(a.size(0), a.options().dtype(at::kLong));
    const Tensor loss = (at::cross_entropy_loss(logits, who) + at::cross_entropy_loss(logits.t(), who)) / 2;
    const Tensor apart = at::triplet_margin_loss(left->forward(a), right->forward(b), right->forward(b.roll(1, 0)));
    (loss + 0.1 * apart).backward();
    optimizer.step();
    {
      const at::NoGradGuard none;
      scale.clamp_(0, std::log(100.0));
    }
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({5, 4}), s.randn({5, 5}));
}

/// Halves scaled by hand: the scale falls where a gradient is infinite.
void a_loss_scaled_by_hand(Session& s) {
  const at::AutoGradMode grad(true);
  auto layer = s.adopt(nn::Linear(4, 2));
  torch::optim::SGD optimizer(layer->parameters(), 0.01);
  double scale = 1024;
  auto f = s.compile([&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = at::linear(x, layer->weight, layer->bias).square().mean();
    (loss * scale).backward();
    Tensor bad = at::zeros({}, x.options());
    for (auto& p : layer->parameters()) {
      p.mutable_grad().mul_(1 / scale);
      bad = bad + (~p.grad().isfinite()).sum();
    }
    if (bad.item<float>() > 0) {
      scale /= 2;
    } else {
      optimizer.step();
    }
    return std::make_pair(loss.detach(), scale);
  });
  for (int call = 0; call < 10; ++call) {
    f(call == 5 ? at::full({3, 4}, std::numeric_limits<double>::infinity(), s.options()) : s.randn({3, 4}));
  }
}

void a_weight_split_into_size_and_direction(Session& s) {
  const at::AutoGradMode grad(true);
  Tensor v = s.randn({3, 4}).requires_grad_(), g = s.randn({3, 1}).requires_grad_();
  s.watch("v", &v);
  s.watch("g", &g);
  auto f = s.compile([&](const Tensor& x) {
    v.mutable_grad() = Tensor();
    g.mutable_grad() = Tensor();
    const Tensor w = g * v / v.norm(2, {1}, true);
    const Tensor y = at::linear(x, w);
    y.register_hook([](const Tensor& slope) { return slope * 0.5; });
    y.square().mean().backward();
    return y.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({2, 4}));
}

const Program programs[] = {
    {"a_step_of_rmsprop_with_everything", a_step_of_rmsprop_with_everything},
    {"a_step_of_adagrad", a_step_of_adagrad},
    {"a_step_of_adam_with_amsgrad", a_step_of_adam_with_amsgrad},
    {"a_step_of_lbfgs", a_step_of_lbfgs},
    {"an_optimizer_of_ones_own_and_an_average", an_optimizer_of_ones_own_and_an_average},
    {"groups_with_rates_of_their_own", groups_with_rates_of_their_own},
    {"a_layer_computed_again", a_layer_computed_again},
    {"a_critic_with_a_penalty", a_critic_with_a_penalty},
    {"a_step_by_the_worst_neighbour", a_step_by_the_worst_neighbour},
    {"a_step_within_a_step", a_step_within_a_step},
    {"pairs_that_belong_together", pairs_that_belong_together},
    {"a_loss_scaled_by_hand", a_loss_scaled_by_hand},
    {"a_weight_split_into_size_and_direction", a_weight_split_into_size_and_direction},
};

}  // namespace

std::span<const Program> recipe_programs() { return programs; }

}  // namespace sinter::test::hostile
