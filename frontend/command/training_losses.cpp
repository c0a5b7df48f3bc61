#include <ATen/Context.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/support/errors.h"
#include "frontend/command/target.h"

namespace sinter::command {
namespace {

/// So few that steps come to know them: losses that fall say more than losses of data that is never seen again.
constexpr size_t batches = 4;

/// The loss of every step, on the batches in turn, with random numbers of the options' seed.
template <class Step>
std::vector<double> losses_of(const Target& target, const TargetOptions& options, int64_t steps, const Step& step) {
  const std::vector<Tensors> calls = draw_calls(target, batches);
  at::manual_seed(options.seed);
  std::vector<double> losses;
  for (int64_t i = 0; i < steps; ++i) {
    losses.push_back(step(calls[static_cast<size_t>(i) % calls.size()]).toTensor().template item<double>());
  }
  return losses;
}

std::vector<double> eager_losses(const TargetOptions& options, int64_t steps) {
  const Target target = make_training_target(options);
  return losses_of(target, options, steps, [&](const Tensors& inputs) { return target.forward(inputs); });
}

std::vector<double> compiled_losses(const TargetOptions& options, int64_t steps) {
  const Target target = make_training_target(options);
  const auto fast = sinter::compile(target.forward, compile_options(options, target));
  return losses_of(target, options, steps, [&](const Tensors& inputs) { return fast(inputs); });
}

/// Not a number where one of the losses is none, or eager's alone is zero.
double difference_of(double compiled, double eager) {
  const double difference = compiled == eager ? 0 : std::abs(compiled - eager) / std::abs(eager);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Losses losses_over_steps(const TargetOptions& options, int64_t steps) {
  if (steps <= 0) throw InternalError("losses", "no steps to compare");
  const std::vector<double> eager = eager_losses(options, steps);
  const std::vector<double> compiled = compiled_losses(options, steps);
  Losses losses{.steps = steps, .first = compiled.front(), .last = compiled.back(), .eager_last = eager.back()};
  for (size_t i = 0; i < eager.size(); ++i) {
    const double difference = difference_of(compiled[i], eager[i]);
    if (std::isnan(difference)) losses.largest_difference = difference;
    losses.largest_difference = std::max(losses.largest_difference, difference);  // keeps what is not a number
  }
  return losses;
}

}  // namespace sinter::command
