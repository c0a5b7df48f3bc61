#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "training.h"

namespace sinter::test {
namespace {

/// Whole training steps that read tensors on the host.
class TrainingReads : public Training {};

/// A model, its optimizer, and what else a step keeps.
struct Loop {
  torch::nn::Sequential model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;

  Tensor loss(const Tensor& x, const Tensor& y) { return at::mse_loss(model->forward(x), y); }
};

using Step = std::function<Tensor(Loop&, const Tensor&, const Tensor&)>;
using Data = std::function<std::pair<Tensor, Tensor>(int)>;

std::unique_ptr<torch::optim::Optimizer> momentum(const Parameters& parameters) {
  return made<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
}

std::unique_ptr<torch::optim::Optimizer> adamw(const Parameters& parameters) {
  return made<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(0.01).weight_decay(0.1));
}

Tensor averages(torch::optim::Optimizer& optimizer, const Tensor& parameter) {
  auto& states = optimizer.state();
  const auto found = states.find(parameter.unsafeGetTensorImpl());
  if (found == states.end()) return {};
  if (auto* sgd = dynamic_cast<torch::optim::SGDParamState*>(found->second.get())) return sgd->momentum_buffer();
  auto& state = static_cast<torch::optim::AdamWParamState&>(*found->second);
  return at::cat({state.exp_avg().flatten(), state.exp_avg_sq().flatten(),
                  at::full({1}, static_cast<double>(state.step()), state.exp_avg().options())});
}

::testing::AssertionResult same_state(Loop& compiled, Loop& eager, double relative, double absolute) {
  const auto parameters = compiled.model->parameters();
  const auto others = eager.model->parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor mine = averages(*compiled.optimizer, parameters[i]);
    const Tensor theirs = averages(*eager.optimizer, others[i]);
    if (mine.defined() != theirs.defined()) return ::testing::AssertionFailure() << "state of parameter " << i;
    if (mine.defined() && !at::allclose(mine, theirs, relative, absolute)) {
      return ::testing::AssertionFailure()
             << "state of parameter " << i << " differs by " << (mine - theirs).abs().max().item<double>() << " of "
             << theirs.abs().max().item<double>();
    }
  }
  return ::testing::AssertionSuccess();
}

struct Twins {
  Loop mine, theirs;
  double relative = 1e-4, absolute = 1e-6;

  Twins(torch::nn::Sequential (*model)(at::Device), at::Device device, MakeOptimizer optimizer)
      : mine{model(device), nullptr}, theirs{model(device), nullptr} {
    mine.optimizer = optimizer(mine.model->parameters());
    theirs.optimizer = optimizer(theirs.model->parameters());
  }

  /// Steps both side by side and compares them after every step.
  Stats train(const Options& options, const Step& step, const Data& data, int calls = 20) {
    auto fast = compile([&](const Tensor& x, const Tensor& y) { return step(mine, x, y); }, options);
    for (int call = 0; call < calls; ++call) {
      const auto [x, y] = data(call);
      at::manual_seed(call);
      const Tensor loss = fast(x, y);
      at::manual_seed(call);
      const Tensor expected = step(theirs, x, y);
      EXPECT_TRUE(at::allclose(loss, expected, relative, absolute, /*equal_nan=*/true)) << call << "\n"
                                                                                        << fast.report();
      EXPECT_TRUE(alike(*mine.model, *theirs.model, relative, absolute)) << call << "\n" << fast.report();
      EXPECT_TRUE(same_state(mine, theirs, relative, absolute)) << call << "\n" << fast.report();
      if (::testing::Test::HasFailure()) break;
      if (call != 12) continue;
      for (Loop* loop : {&mine, &theirs}) {
        auto& settings = loop->optimizer->param_groups()[0].options();
        settings.set_lr(settings.get_lr() / 2);
      }
    }
    EXPECT_TRUE(unbroken(fast.report()));
    return fast.stats();
  }
};

Step clipped(double max_norm, bool error_if_nonfinite = false) {
  return [=](Loop& loop, const Tensor& x, const Tensor& y) {
    loop.optimizer->zero_grad();
    const Tensor loss = loop.loss(x, y);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(loop.model->parameters(), max_norm, 2.0, error_if_nonfinite);
    loop.optimizer->step();
    return loss.detach();
  };
}

TEST_P(TrainingReads, gradients_are_clipped_by_their_norm) {
  for (const MakeOptimizer optimizer : {momentum, adamw}) {
    for (const double max_norm : {0.1, 1e3}) {
      SCOPED_TRACE(max_norm);
      Twins twins(mlp, GetParam().device, optimizer);
      const Stats stats =
          twins.train(options(), clipped(max_norm), [&](int) { return std::pair(randn({8, 6}), randn({8, 2})); });
      EXPECT_GE(stats.replayed, 5);
    }
  }
}

TEST_P(TrainingReads, an_error_for_a_norm_that_is_not_finite_is_thrown) {
  Twins twins(mlp, GetParam().device, momentum);
  const auto data = [&](int) { return std::pair(randn({8, 6}), randn({8, 2})); };
  const Stats stats = twins.train(options(), clipped(0.1, /*error_if_nonfinite=*/true), data);
  EXPECT_GE(stats.replayed, 5);

  auto fast =
      compile([&](const Tensor& x, const Tensor& y) { return clipped(0.1, true)(twins.mine, x, y); }, options());
  const Tensor y = randn({8, 2});
  for (int call = 0; call < 4; ++call) {
    fast(randn({8, 6}), y);
    EXPECT_ANY_THROW(fast(at::full_like(y, std::numeric_limits<float>::infinity()).expand({8, 2}).repeat({1, 3}), y));
  }
}

TEST_P(TrainingReads, gradients_are_clipped_by_their_values) {
  Twins twins(mlp, GetParam().device, adamw);
  const Step step = [](Loop& loop, const Tensor& x, const Tensor& y) {
    loop.optimizer->zero_grad();
    const Tensor loss = loop.loss(x, y);
    loss.backward();
    torch::nn::utils::clip_grad_value_(loop.model->parameters(), 0.02);
    loop.optimizer->step();
    return loss.detach();
  };
  const Stats stats = twins.train(options(), step, [&](int) { return std::pair(randn({8, 6}), randn({8, 2})); });
  EXPECT_GE(stats.replayed, 12);
}

TEST_P(TrainingReads, a_loss_that_is_read_and_not_used_does_not_steer) {
  Twins twins(mlp, GetParam().device, momentum);
  const Step step = [](Loop& loop, const Tensor& x, const Tensor& y) {
    loop.optimizer->zero_grad();
    const Tensor loss = loop.loss(x, y);
    loss.backward();
    loop.optimizer->step();
    (void)loss.item<float>();
    return loss.detach();
  };
  const Stats stats = twins.train(options(), step, [&](int) { return std::pair(randn({8, 6}), randn({8, 2})); });
  EXPECT_GE(stats.replayed, 5);
}

/// Data whose losses are infinite or nan in some calls, the first one included.
std::pair<Tensor, Tensor> sometimes_infinite(int call, Tensor x, Tensor y) {
  if (call % 5 == 0) x = at::full_like(x, std::numeric_limits<float>::infinity());
  return {std::move(x), std::move(y)};
}

TEST_P(TrainingReads, a_step_is_skipped_where_the_loss_is_not_finite) {
  const Step by_bool = [](Loop& loop, const Tensor& x, const Tensor& y) {
    loop.optimizer->zero_grad();
    const Tensor loss = loop.loss(x, y);
    if (!at::isfinite(loss).item<bool>()) return loss.detach();
    loss.backward();
    loop.optimizer->step();
    return loss.detach();
  };
  const Step by_number = [](Loop& loop, const Tensor& x, const Tensor& y) {
    const Tensor loss = loop.loss(x, y);
    if (!std::isfinite(loss.item<float>())) return loss.detach();
    loop.optimizer->zero_grad();
    loss.backward();
    torch::nn::utils::clip_grad_norm_(loop.model->parameters(), 0.1);
    loop.optimizer->step();
    return loss.detach();
  };
  for (const MakeOptimizer optimizer : {momentum, adamw}) {
    for (const Step& step : {by_bool, by_number}) {
      Twins twins(mlp, GetParam().device, optimizer);
      const Stats stats = twins.train(
          options(), step, [&](int call) { return sometimes_infinite(call, randn({8, 6}), randn({8, 2})); }, 40);
      EXPECT_GE(stats.replayed, 8);
    }
  }
}

TEST_P(TrainingReads, gradients_that_accumulate_are_clipped_in_place) {
  Twins twins(mlp, GetParam().device, momentum);
  const Step step = [](Loop& loop, const Tensor& x, const Tensor& y) {
    const Tensor loss = loop.loss(x, y);
    loss.backward();
    const double norm = torch::nn::utils::clip_grad_norm_(loop.model->parameters(), 0.2);
    if (norm > 0.1) loop.optimizer->step();
    return loss.detach();
  };
  const Stats stats = twins.train(options(), step, [&](int) { return std::pair(randn({8, 6}), randn({8, 2})); });
  EXPECT_GE(stats.replayed, 4);
}

torch::nn::Sequential with_dropout(at::Device device) {
  at::manual_seed(6);
  torch::nn::Sequential model(torch::nn::Linear(6, 32), torch::nn::Dropout(0.4), torch::nn::ReLU(),
                              torch::nn::Linear(32, 2));
  model->to(device);
  return model;
}

TEST_P(TrainingReads, dropout_draws_the_numbers_of_eager) {
  Twins twins(with_dropout, GetParam().device, adamw);
  const Stats stats =
      twins.train(options(), clipped(0.1), [&](int) { return std::pair(randn({8, 6}), randn({8, 2})); });
  EXPECT_GE(stats.replayed, 5);
}

/// Scales losses so that half-precision gradients keep their digits: what Python's GradScaler does.
struct Scaler {
  Tensor scale, growth;
  double backoff = 0.5;
  int64_t interval = 3;  ///< steps without overflow, after which the scale grows
  int64_t skipped = 0;   ///< steps

  Scaler(at::Device device, double initial)
      : scale(at::full({}, initial, at::TensorOptions(device).dtype(at::kFloat))),
        growth(at::zeros({}, at::TensorOptions(device).dtype(at::kInt))) {}

  void step_or_skip(Loop& loop, bool finite) {
    if (finite) loop.optimizer->step();
    skipped += finite ? 0 : 1;
  }

  /// Steps unless a gradient overflowed, and adapts the scale.
  void step(Loop& loop) {
    std::vector<Tensor> gradients;
    for (const Tensor& parameter : loop.model->parameters()) gradients.push_back(parameter.grad());
    Tensor found_inf = at::zeros({}, scale.options());
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, scale.reciprocal());
    step_or_skip(loop, found_inf.item<float>() == 0);
    at::_amp_update_scale_(scale, growth, found_inf, 2.0, backoff, interval);
  }
};

/// The same by hand.
void step_by_hand(Scaler& scaler, Loop& loop) {
  const c10::NoGradGuard no_grad;
  bool finite = true;
  for (const Tensor& parameter : loop.model->parameters()) {
    parameter.grad().mul_(scaler.scale.reciprocal());
    finite = finite && at::isfinite(parameter.grad()).all().item<bool>();
  }
  scaler.step_or_skip(loop, finite);
  scaler.scale.mul_(finite ? 1.25 : 0.5);
}

using Stepping = void (*)(Scaler&, Loop&);

TEST_P(TrainingReads, a_scaler_skips_the_steps_whose_gradients_overflow) {
  for (const Stepping stepping : {Stepping([](Scaler& s, Loop& l) { s.step(l); }), Stepping(step_by_hand)}) {
    Twins twins(mlp, GetParam().device, momentum);
    twins.absolute = 1e-4;
    Scaler mine(GetParam().device, 1e30), theirs(GetParam().device, 1e30);
    const Step step = [&](Loop& loop, const Tensor& x, const Tensor& y) {
      Scaler& scaler = &loop == &twins.mine ? mine : theirs;
      loop.optimizer->zero_grad();
      const Tensor loss = loop.loss(x, y);
      (loss * scaler.scale).backward();
      stepping(scaler, loop);
      return loss.detach();
    };
    // Some batches overflow by far: the order of a sum never decides whether one does.
    const auto data = [&](int batch) {
      const double size = batch % 7 == 3 ? 1e15 : 1;
      return std::pair(randn({8, 6}) * size, randn({8, 2}) * size);
    };
    const Stats stats = twins.train(options(), step, data, 30);
    EXPECT_GE(stats.replayed, 8);
    EXPECT_TRUE(same(mine.scale, theirs.scale));
    EXPECT_TRUE(at::equal(mine.growth, theirs.growth));
    EXPECT_GT(mine.skipped, 0);
    EXPECT_EQ(mine.skipped, theirs.skipped);
  }
}

/// Autocast for the length of a scope.
class Autocast {
 public:
  explicit Autocast(at::DeviceType device) : device_(device) {
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
};

/// Uses each weight twice, so that gradients add up in the precision of the cast that both uses share.
Tensor autocast_loss(Loop& loop, const Tensor& x, const Tensor& y) {
  Tensor loss;
  {
    const Autocast autocast(x.device().type());
    const Tensor prediction = loop.model->forward(x) + loop.model->forward(x * 0.5);
    loss = at::mse_loss(prediction.to(at::kFloat), y);
  }
  return loss;
}

/// A sum in another order rounds to the next half, 1e-3 of it. Gradients that are kept wide inside kernels are others
/// in the third digit. Momentum adds up ten of them. Wide ones also overflow later than halves do: their scale jumps
/// from where all do to where none does.
TEST_P(TrainingReads, autocast_and_a_scaler_do_what_eager_does) {
  const auto check = [this](MakeOptimizer optimizer, Numerics numerics) {
    Twins twins(mlp, GetParam().device, optimizer);
    twins.relative = numerics == Numerics::fast ? 3e-2 : 5e-3;
    twins.absolute = numerics == Numerics::fast ? 3e-2 : 5e-3;
    const double initial = numerics == Numerics::fast ? 0x1p40 : 0x1p16;
    Scaler mine(GetParam().device, initial), theirs(GetParam().device, initial);
    for (Scaler* scaler : {&mine, &theirs}) {
      if (numerics == Numerics::fast) scaler->backoff = 0x1p-30, scaler->interval = 1000;
    }
    const Step step = [&](Loop& loop, const Tensor& x, const Tensor& y) {
      Scaler& scaler = &loop == &twins.mine ? mine : theirs;
      loop.optimizer->zero_grad();
      const Tensor loss = autocast_loss(loop, x, y);
      (loss * scaler.scale).backward();
      scaler.step(loop);
      return loss.detach();
    };
    const auto data = [&](int) { return std::pair(randn({8, 6}), randn({8, 2})); };
    Options rounding = options();
    rounding.numerics = numerics;
    const Stats stats = twins.train(rounding, step, data);
    EXPECT_GE(stats.replayed, 8);
    EXPECT_TRUE(same(mine.scale, theirs.scale));
  };
  for (const MakeOptimizer optimizer : {momentum, adamw}) {
    check(optimizer, Numerics::fast);
    check(optimizer, Numerics::eager);
  }
}

TEST_P(TrainingReads, uses_of_a_weight_under_autocast_share_its_cast) {
  const Tensor weight = at::ones({1, 1}, at::TensorOptions(GetParam().device)).requires_grad_();
  const auto program = [&weight](const Tensor& x) {
    weight.mutable_grad().reset();
    Tensor sum;
    {
      const Autocast autocast(x.device().type());
      sum = (at::linear(x, weight) + at::linear(x / 4096, weight)).sum();
    }
    sum.backward();
    return sum.detach();
  };
  Options settings = options();
  settings.numerics = Numerics::eager;
  auto fast = compile(program, settings);
  const Tensor x = at::ones({1, 1}, weight.options().requires_grad(false));
  for (int call = 0; call < 6; ++call) {
    fast(x);
    EXPECT_EQ(weight.grad().item<float>(), 1.0F) << "1 + 1 / 4096 adds up in half precision\n" << fast.report();
  }
  EXPECT_GT(fast.stats().replayed, 0) << fast.report();
}

TEST_P(TrainingReads, autocast_around_the_call_does_what_it_does_around_eager) {
  Twins twins(mlp, GetParam().device, momentum);
  const auto step = [](Loop& loop, const Tensor& x, const Tensor& y) {
    const Tensor loss = loop.loss(x, y);
    loss.backward();
    return loss.detach();
  };
  auto fast = compile([&](const Tensor& x, const Tensor& y) { return step(twins.mine, x, y); }, options());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = randn({8, 6}), y = randn({8, 2});
    {
      const Autocast autocast(GetParam().device);
      fast(x, y);
    }
    const Autocast autocast(GetParam().device);
    step(twins.theirs, x, y);
    ASSERT_TRUE(alike(*twins.mine.model, *twins.theirs.model, 3e-2, 1e-2)) << call << "\n" << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
}

INSTANTIATE_TEST_SUITE_P(Cpu, TrainingReads, ::testing::Values(Where{"cpu", at::kCPU, Mode::Default}), name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, TrainingReads,
                         ::testing::Values(Where{"cuda", at::kCUDA, Mode::Default},
                                           Where{"cuda_graph", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

}  // namespace
}  // namespace sinter::test
