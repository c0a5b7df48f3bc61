#include "bench/models/radam.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <memory>
#include <optional>
#include <utility>

namespace sinter::bench {
namespace {

struct RAdamState : public torch::optim::OptimizerCloneableParamState<RAdamState> {
  int64_t step = 0;
  at::Tensor average;  ///< of gradients
  at::Tensor square;   ///< average of their squares
};

/// The variance of the adaptive rate is known from this many samples on.
constexpr double enough_samples = 5;

/// What the adaptive rate of a step is multiplied with; nothing where its variance is not known yet.
std::optional<double> rectification(double beta2, int64_t step) {
  const double power = std::pow(beta2, step);
  const double most = 2 / (1 - beta2) - 1;
  const double samples = most - 2 * static_cast<double>(step) * power / (1 - power);
  if (samples <= enough_samples) return std::nullopt;
  return std::sqrt((samples - 4) * (samples - 2) * most / ((most - 4) * (most - 2) * samples));
}

void update(const at::Tensor& parameter, RAdamState& state, const RAdamOptions& options) {
  const at::Tensor& gradient = parameter.grad();
  if (!state.average.defined()) {
    state.average = at::zeros_like(parameter);
    state.square = at::zeros_like(parameter);
  }
  ++state.step;
  state.average.mul_(options.beta1).add_(gradient, 1 - options.beta1);
  state.square.mul_(options.beta2).addcmul_(gradient, gradient, 1 - options.beta2);
  const double size = options.lr / (1 - std::pow(options.beta1, state.step));
  const auto rectified = rectification(options.beta2, state.step);
  if (!rectified) {
    parameter.add_(state.average, -size);
    return;
  }
  const double unbiased = std::sqrt(1 - std::pow(options.beta2, state.step));
  parameter.addcdiv_(state.average, state.square.sqrt().add_(options.eps), -size * *rectified * unbiased);
}

}  // namespace

RAdam::RAdam(std::vector<at::Tensor> parameters, RAdamOptions defaults)
    : Optimizer(std::move(parameters), std::make_unique<RAdamOptions>(std::move(defaults))) {}

at::Tensor RAdam::step(LossClosure closure) {
  at::Tensor loss;
  if (closure) {
    const at::AutoGradMode grad(true);
    loss = closure();
  }
  const at::NoGradGuard no_grad;
  for (const torch::optim::OptimizerParamGroup& group : param_groups_) {
    const auto& options = static_cast<const RAdamOptions&>(group.options());
    for (const at::Tensor& parameter : group.params()) {
      if (!parameter.grad().defined()) continue;
      std::unique_ptr<torch::optim::OptimizerParamState>& state = state_[parameter.unsafeGetTensorImpl()];
      if (!state) state = std::make_unique<RAdamState>();
      update(parameter, static_cast<RAdamState&>(*state), options);
    }
  }
  return loss;
}

}  // namespace sinter::bench
