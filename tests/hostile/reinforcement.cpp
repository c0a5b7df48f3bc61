#include <torch/optim/rmsprop.h>

#include "groups.h"
#include "programs.h"

/// Agents: policies that draw actions, buffers written in place, returns summed backwards, networks that follow others.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

nn::Sequential small_net(int64_t in, int64_t out) {
  return nn::Sequential(nn::Linear(in, 8), nn::Tanh(), nn::Linear(8, out));
}

void a_policy_gradient(Session& s) {
  const at::AutoGradMode grad(true);
  auto net = s.adopt(small_net(4, 3));
  torch::optim::Adam optimizer(net->parameters(), 0.01);
  auto f = s.compile([&](const Tensor& states, const Tensor& rewards) {
    const Tensor logs = at::log_softmax(net->forward(states), -1);
    const Tensor actions = at::multinomial(logs.detach().exp(), 1);
    const Tensor chosen = logs.gather(1, actions).squeeze(1);
    const Tensor entropy = -(logs.exp() * logs).sum(-1).mean();
    const Tensor loss = -(chosen * (rewards - rewards.mean())).mean() - 0.01 * entropy;
    optimizer.zero_grad();
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 0.5);
    optimizer.step();
    return std::make_pair(actions, loss.detach());
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6, 4}), s.randn({6}));
}

/// A ring of transitions, written at places that go round.
class Buffer {
 public:
  explicit Buffer(Session& s)
      : states(at::zeros({8, 3}, s.options())), rewards(at::zeros({8}, s.options())), done(rewards.to(at::kBool)) {}
  void add(const Tensor& state, const Tensor& reward, bool ends) {
    states[next_].copy_(state);
    rewards.index_put_({next_}, reward);
    done.index_put_({next_}, ends);
    next_ = (next_ + 1) % 8;
    filled_ = std::min<int64_t>(filled_ + 1, 8);
  }
  std::vector<Tensor> draw(int64_t count) const {
    const Tensor chosen = at::randint(filled_, {count}, states.options().dtype(at::kLong));
    return {states.index_select(0, chosen), rewards.index({chosen}), done.index({chosen})};
  }
  Tensor states, rewards, done;

 private:
  int64_t next_ = 0, filled_ = 0;
};

void a_buffer_that_goes_round(Session& s) {
  Buffer buffer(s);
  s.watch("states", &buffer.states);
  s.watch("done", &buffer.done);
  auto f = s.compile([&](const Tensor& state, const Tensor& reward, bool ends) {
    buffer.add(state, reward, ends);
    return buffer.draw(4);
  });
  for (int call = 0; call < 20; ++call) f(s.randn({3}), s.randn({}), call % 5 == 4);
}

void a_network_that_follows_another(Session& s) {
  const at::AutoGradMode grad(true);
  auto net = s.adopt(small_net(4, 2));
  auto target = s.adopt(small_net(4, 2));
  torch::optim::RMSprop optimizer(net->parameters(), 0.01);
  auto f = s.compile([&](const Tensor& now, const Tensor& action, const Tensor& reward, const Tensor& next) {
    Tensor goal;
    {
      const at::NoGradGuard none;
      const Tensor best = net->forward(next).argmax(1, true);
      goal = reward + 0.9 * target->forward(next).gather(1, best).squeeze(1);
    }
    const Tensor value = net->forward(now).gather(1, action.unsqueeze(1)).squeeze(1);
    const Tensor loss = at::smooth_l1_loss(value, goal);
    optimizer.zero_grad();
    loss.backward();
    for (auto& p : net->parameters()) p.mutable_grad().clamp_(-1, 1);
    optimizer.step();
    const at::NoGradGuard none;
    const auto from = net->parameters();
    const auto to = target->parameters();
    for (size_t i = 0; i < to.size(); ++i) to[i].mul_(0.95).add_(from[i], 0.05);
    return loss.detach();
  });
  for (int call = 0; call < 8; ++call) f(s.randn({5, 4}), s.integers(2, {5}), s.randn({5}), s.randn({5, 4}));
}

void advantages_summed_backwards(Session& s) {
  auto f = s.compile([](const Tensor& rewards, const Tensor& values, const Tensor& ends) {
    Tensor all = at::zeros_like(rewards), last = at::zeros({rewards.size(1)}, rewards.options());
    for (int64_t t = rewards.size(0) - 1; t >= 0; --t) {
      const Tensor going = 1 - ends[t].to(at::kFloat);
      const Tensor surprise = rewards[t] + 0.99 * values[t + 1] * going - values[t];
      last = surprise + 0.95 * 0.99 * going * last;
      all[t] = last;
    }
    return (all - all.mean()) / (all.std() + 1e-8);
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6, 3}), s.randn({7, 3}), s.randn({6, 3}) > 1);
}

void ratios_that_are_clipped(Session& s) {
  const at::AutoGradMode grad(true);
  auto net = s.adopt(small_net(4, 2));
  auto spread = s.randn({2}).requires_grad_();
  s.watch("spread", &spread);
  auto parameters = net->parameters();
  parameters.push_back(spread);
  torch::optim::SGD optimizer(parameters, 0.05);
  auto f = s.compile([&](const Tensor& x, const Tensor& actions, const Tensor& old, const Tensor& advantage) {
    float total = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      const Tensor z = (actions - net->forward(x)) / spread.exp();
      const Tensor logs = (-0.5 * z.square() - spread - 0.9189385).sum(-1);
      const Tensor ratio = (logs - old).clamp(-4, 4).exp();
      const Tensor loss = -at::min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<float>();
    }
    return total;
  });
  for (int call = 0; call < 8; ++call) f(s.randn({6, 4}), s.randn({6, 2}), s.randn({6}), s.randn({6}));
}

/// A coin of the host decides between a draw and the best.
void an_action_by_a_coin(Session& s) {
  auto net = s.adopt(small_net(4, 3));
  uint64_t coin = 7;
  auto f = s.compile([&](const Tensor& state, double rate) -> int64_t {
    coin = coin * 6364136223846793005ULL + 1442695040888963407ULL;
    if (static_cast<double>(coin >> 40) / (1 << 24) < rate) return at::randint(3, {1}, state.options()).item<int64_t>();
    return net->forward(state).argmax().item<int64_t>();
  });
  for (int call = 0; call < 12; ++call) f(s.randn({4}), 0.4);
}

void running_moments(Session& s) {
  Tensor mean = at::zeros({3}, s.options(at::kDouble)), square = at::ones({3}, s.options(at::kDouble));
  Tensor count = at::zeros({}, s.options(at::kLong));
  for (const auto& [name, tensor] :
       {std::pair("mean", &mean), std::pair("square", &square), std::pair("count", &count)}) {
    s.watch(name, tensor);
  }
  auto f = s.compile([&](const Tensor& batch) {
    count += batch.size(0);
    const Tensor share = batch.size(0) / count.to(at::kDouble);
    const Tensor away = batch.to(at::kDouble).mean(0) - mean;
    mean.add_(away * share);
    square.mul_(1 - share).add_(share * batch.to(at::kDouble).var(0, false)).add_(away.square() * share * (1 - share));
    return ((batch - mean) / (square + 1e-6).sqrt()).to(at::kFloat).clamp(-5, 5);
  });
  for (int call = 0; call < 9; ++call) f(s.randn({4 + call % 2, 3}));
}

void arms_chosen_by_bounds(Session& s) {
  Tensor tries = at::ones({5}, s.options()), wins = at::zeros({5}, s.options());
  s.watch("tries", &tries);
  auto f = s.compile([&](const Tensor& rewards) {
    const Tensor bound = wins / tries + at::sqrt(2 * tries.sum().log() / tries);
    const Tensor arm = bound.argmax();
    tries.index_put_({arm}, at::ones({}, tries.options()), /*accumulate=*/true);
    wins.index_put_({arm}, rewards.index({arm}), /*accumulate=*/true);
    return arm;
  });
  for (int call = 0; call < 10; ++call) f(s.randn({5}));
}

const Program programs[] = {
    {"a_policy_gradient", a_policy_gradient},
    {"a_buffer_that_goes_round", a_buffer_that_goes_round},
    {"a_network_that_follows_another", a_network_that_follows_another},
    {"advantages_summed_backwards", advantages_summed_backwards},
    {"ratios_that_are_clipped", ratios_that_are_clipped},
    {"an_action_by_a_coin", an_action_by_a_coin},
    {"running_moments", running_moments},
    {"arms_chosen_by_bounds", arms_chosen_by_bounds},
};

}  // namespace

std::span<const Program> reinforcement_programs() { return programs; }

}  // namespace sinter::test::hostile
