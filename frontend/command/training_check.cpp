#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/cat.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>

#include "compiler/support/errors.h"
#include "frontend/command/target.h"

namespace sinter::command {
namespace {

/// Calls of a compiled step: two that are recorded (before and after the optimizer has state), and replays. RAdam's
/// sixth step goes another way, which is recorded and replayed as well.
size_t steps_of(const TargetOptions& options) { return options.optimizer == "radam" ? 9 : 6; }

/// Where steps draw random numbers a wider run draws others, so that eager itself is the reference and no error of its
/// own says what is allowed: the part of an update that rounding may change.
constexpr double allowed_in_f32 = 1e-2;
constexpr double allowed_under_autocast = 1e-1;

/// Copies of everything that a step may change.
Tensors state_of(const torch::nn::Module& module) {
  const auto copy = [](const at::Tensor& tensor) {
    return tensor.detach().to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  };
  Tensors state;
  for (const at::Tensor& parameter : module.parameters()) state.push_back(copy(parameter));
  for (const at::Tensor& buffer : module.buffers()) state.push_back(copy(buffer));
  return state;
}

struct Trained {
  Tensors before;
  Tensors after;
  bool random = false;  ///< the steps have drawn random numbers
};

at::Tensor generator_state(at::Device device) { return at::globalContext().defaultGenerator(device).get_state(); }

/// Runs the steps of a target on inputs of the options' seed, as they are or converted to the target's dtype.
template <class Step>
Trained trained(const Target& target, const std::vector<Tensors>& inputs, uint64_t seed, const Step& step) {
  at::manual_seed(seed);
  Trained result;
  result.before = state_of(*target.module);
  const at::Tensor drawn = generator_state(target.device);
  for (const Tensors& call : inputs) step(call);
  result.random = !generator_state(target.device).equal(drawn);
  result.after = state_of(*target.module);
  return result;
}

/// What the steps added to parameters and buffers, as one vector: each tensor in units of what the reference added to
/// it, so that small gradients count as much as large ones.
at::Tensor updates(const Trained& run, const Trained& reference) {
  Tensors parts;
  for (size_t i = 0; i < run.after.size(); ++i) {
    const at::Tensor expected = reference.after[i] - reference.before[i];
    const double unit = expected.numel() == 0 ? 0 : std::sqrt(expected.square().mean().item<double>());
    const at::Tensor update = run.after[i] - run.before[i];
    parts.push_back((unit > 0 ? update / unit : update).flatten().to(at::kFloat));
  }
  return at::cat(parts);
}

Tensors widened(const Tensors& inputs) {
  Tensors wide;
  for (const at::Tensor& input : inputs) wide.push_back(input.is_floating_point() ? input.to(at::kDouble) : input);
  return wide;
}

bench::Accuracy with_allowance(bench::Accuracy accuracy, double allowed) {
  accuracy.rms_allowed = allowed;
  accuracy.max_allowed = std::max(accuracy.max_error, accuracy.max_allowed);  // single elements may be anything
  accuracy.ok = accuracy.rms_error <= allowed;
  return accuracy;
}

}  // namespace

Judged judge_training(const TargetOptions& options) {
  const Target compiled = make_training_target(options);
  const std::vector<Tensors> inputs = draw_calls(compiled, steps_of(options));
  const auto fast = sinter::compile(compiled.forward, compile_options(options, compiled));
  const Trained ours = trained(compiled, inputs, options.seed, [&](const Tensors& call) { (void)fast(call); });
  const Target eager = make_training_target(options);
  const Trained theirs = trained(eager, inputs, options.seed, [&](const Tensors& call) { (void)eager.forward(call); });
  if (theirs.random) {
    const at::Tensor expected = updates(theirs, theirs);
    return {with_allowance(bench::compare(updates(ours, theirs), expected, expected),
                           options.amp.empty() ? allowed_in_f32 : allowed_under_autocast),
            "eager"};
  }
  TargetOptions wide_options = options;
  wide_options.dtype = "f64";
  wide_options.amp.clear();
  const Target wide = make_training_target(wide_options);
  const Trained exact =
      trained(wide, inputs, options.seed, [&](const Tensors& call) { (void)wide.forward(widened(call)); });
  return {bench::compare(updates(ours, exact), updates(theirs, exact), updates(exact, exact)), "float64"};
}

}  // namespace sinter::command
