// No window in which a call answers from what was: something on the host changes before every call, and every call does
// what eager does.
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "checked.h"

namespace sinter::test {
namespace {

using at::Tensor;
namespace nn = torch::nn;

constexpr int64_t kCalls = 10'000;

/// Looks at the memory of both, element by element.
Tensor times_first(const Tensor& x, const Tensor& table) {
  const Tensor from = x.contiguous();
  Tensor result = at::empty_like(from);
  const float factor = table.const_data_ptr<float>()[0];
  for (int64_t i = 0; i < from.numel(); ++i) {
    result.mutable_data_ptr<float>()[i] = from.const_data_ptr<float>()[i] * factor;
  }
  return result;
}

}  // namespace

TORCH_LIBRARY(sinter_checked, library) {
  library.def("times_first(Tensor x, Tensor table) -> Tensor");
  library.impl("times_first", c10::DispatchKey::CPU, &times_first);
}

namespace {

Tensor call_times_first(const Tensor& x, const Tensor& table) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("sinter_checked::times_first", "")
                             .typed<Tensor(const Tensor&, const Tensor&)>();
  return op.call(x, table);
}

/// Everything that a callable looks at beside its arguments.
struct World {
  nn::Linear first{4, 4};
  nn::Linear second{4, 4};
  torch::optim::SGD optimizer{first->parameters(), torch::optim::SGDOptions(0.5)};
  torch::optim::StepLR schedule{optimizer, 1, 0.999};
  Tensor table = at::ones({2});
  double scale = 1;
  bool joined = false;
  std::vector<Tensor> kept;

  [[nodiscard]] double rate() { return optimizer.param_groups()[0].options().get_lr(); }

  Tensor forward(const Tensor& x) {
    const Tensor y = joined ? second(at::relu(first(x))) : first(x) - second(x);
    return call_times_first(y * scale, table) + x * rate();
  }
};

/// The ways in which it changes; each leaves what it replaces alive.
std::vector<std::function<void(World&, int64_t)>> changes() {
  return {
      [](World& w, int64_t) { std::swap(w.first->weight, w.second->weight); },
      [](World& w, int64_t call) {
        w.kept.push_back(w.second->weight);
        w.second->weight = at::full({4, 4}, 0.001 * static_cast<double>(call % 700));
      },
      [](World& w, int64_t) { w.schedule.step(); },
      [](World& w, int64_t) { w.joined = !w.joined; },
      [](World& w, int64_t call) { w.scale = 0.5 + static_cast<double>(call % 13); },
      [](World& w, int64_t call) { w.table.mutable_data_ptr<float>()[0] = static_cast<float>(call % 17); },
      [](World& w, int64_t call) { w.first->bias.data_ptr<float>()[1] = static_cast<float>(call % 19); },
      [](World& w, int64_t) { std::swap(w.first, w.second); },
  };
}

TEST_F(Checked, no_call_answers_from_a_world_that_was) {
  const c10::NoGradGuard no_grad;
  World world;
  const auto program = [&world](const Tensor& x) { return world.forward(x); };
  auto fast = compile(program, checked());
  const auto all = changes();
  for (int64_t call = 0; call < kCalls; ++call) {
    all[static_cast<size_t>(call * 5 + call / 97) % all.size()](world, call);
    const Tensor x = at::randn({2, 4});
    ASSERT_TRUE(same(fast(x), program(x), 1e-4)) << call;
  }
  EXPECT_GE(fast.stats().replayed, kCalls * 9 / 10) << fast.report();
}

/// A training step that runs in a world of its own, compiled or not, over the same data as the other.
class Trainee {
 public:
  explicit Trainee(bool compiled) {
    at::manual_seed(3);
    layers_ = {nn::Linear(4, 4), nn::Linear(4, 4)};
    std::vector<Tensor> parameters = layers_[0]->parameters();
    for (const Tensor& parameter : layers_[1]->parameters()) parameters.push_back(parameter);
    optimizer_ =
        std::make_unique<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(0.05).momentum(0.5));
    if (compiled) fast_.emplace([this](const Tensor& x) { return step(x); }, checked());
  }

  void change(int64_t call) {
    if (call % 3 == 0) std::swap(layers_[0], layers_[1]);
    if (call % 5 == 1) frozen_ = !frozen_;
    layers_[0]->weight.set_requires_grad(!frozen_);
    auto& settings = static_cast<torch::optim::SGDOptions&>(optimizer_->param_groups()[0].options());
    settings.lr(0.01 + 0.001 * static_cast<double>(call % 11));
    settings.momentum(call % 7 == 6 ? 0.25 : 0.5);
  }

  Tensor operator()(const Tensor& x) { return fast_ ? (*fast_)(x) : step(x); }
  [[nodiscard]] std::vector<Tensor> parameters() const { return optimizer_->param_groups()[0].params(); }
  [[nodiscard]] int64_t replayed() const { return fast_->stats().replayed; }

 private:
  Tensor step(const Tensor& x) {
    optimizer_->zero_grad();
    const Tensor loss = layers_[1]->forward(at::tanh(layers_[0]->forward(x))).pow(2).mean();
    loss.backward();
    optimizer_->step();
    return loss.detach();
  }

  std::vector<nn::Linear> layers_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
  bool frozen_ = false;
  std::optional<Compiled<std::function<Tensor(const Tensor&)>>> fast_;
};

TEST_F(Checked, no_step_trains_with_settings_that_were) {
  Trainee eager(false);
  Trainee compiled(true);
  for (int64_t call = 0; call < kCalls; ++call) {
    eager.change(call);
    compiled.change(call);
    const Tensor x = at::randn({2, 4});
    ASSERT_TRUE(same(compiled(x), eager(x), 1e-3)) << call;
  }
  const auto wanted = eager.parameters(), now = compiled.parameters();
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_TRUE(same(now[i].detach(), wanted[i].detach(), 1e-3)) << i;
  EXPECT_GE(compiled.replayed(), kCalls * 9 / 10);
}

}  // namespace
}  // namespace sinter::test
