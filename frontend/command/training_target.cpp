#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "bench/models/labels.h"
#include "bench/models/radam.h"
#include "compiler/support/errors.h"
#include "frontend/command/target.h"

namespace sinter::command {
namespace {

/// Small enough that a handful of steps stays where it began, so that rounding errors are not multiplied.
constexpr double learning_rate = 1e-3;

/// Autocast while it lives, with its cache of cast weights, as Python's `with torch.autocast` around a forward pass.
class Autocast {
 public:
  Autocast(at::DeviceType device, at::ScalarType dtype)
      : device_(device),
        was_(at::autocast::is_autocast_enabled(device)),
        dtype_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(device, dtype);
    at::autocast::increment_nesting();
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }

 private:
  at::DeviceType device_;
  bool was_;
  at::ScalarType dtype_;
};

std::optional<at::ScalarType> autocast_dtype(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "f16") return at::kHalf;
  if (text == "bf16") return at::kBFloat16;
  throw UserError(fmt::format("autocast to '{}' is unknown. Known: f16, bf16", text));
}

std::shared_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name, torch::nn::Module& module) {
  using namespace torch::optim;
  if (name.empty() || name == "sgd") {
    return std::make_shared<SGD>(module.parameters(), SGDOptions(learning_rate).momentum(0.9).weight_decay(1e-4));
  }
  if (name == "adamw") return std::make_shared<AdamW>(module.parameters(), AdamWOptions(learning_rate));
  if (name == "radam") return std::make_shared<bench::RAdam>(module.parameters());
  throw UserError(fmt::format("optimizer '{}' is unknown. Known: sgd, adamw, radam", name));
}

/// A model whose results are scores of classes in their last dim, and the places that have one class each.
struct Learner {
  Target target;
  std::vector<int64_t> places;
  int64_t classes = 0;
};

at::Tensor draw_labels(const Learner& learner) {
  bench::InputSpec spec{.dtype = ir::DType::i64, .sizes = learner.places};
  spec.below = learner.classes;
  return bench::draw(spec, learner.target.device);
}

Learner built_in_learner(const TargetOptions& options) {
  const bench::Labels labels = bench::labels_of(options.model);
  if (labels.classes == 0) throw UserError(fmt::format("model '{}' has no parameters to train", options.model));
  Learner learner{.target = make_built_in_target(options), .places = {}, .classes = labels.classes};
  learner.target.module->train();
  learner.places = learner.target.first.front().sizes().slice(0, labels.dims).vec();
  return learner;
}

/// The first tensor of a result, whose last dim is one of classes. Throws UserError where there is none.
at::Tensor scores_of(const c10::IValue& result, const std::string& model) {
  const Tensors tensors = tensors_in(result);
  const bool fits = !tensors.empty() && tensors.front().is_floating_point() && tensors.front().dim() >= 2 &&
                    tensors.front().size(-1) > 1;
  if (fits) return tensors.front();
  throw UserError(model +
                  ": --train needs scores of classes, a first result of floats in [..., classes]; profile a step of "
                  "your own with sinter::profile");
}

/// Files say nothing of labels: their result does. It is in the train or eval mode that it was saved in.
Learner file_learner(const TargetOptions& options) {
  Learner learner{.target = make_file_target(options), .places = {}, .classes = 0};
  Target& target = learner.target;
  const std::vector<at::Tensor> parameters = target.module->parameters();
  if (parameters.empty()) throw UserError(options.model + ": it has no parameters to train");
  for (const at::Tensor& parameter : parameters) parameter.requires_grad_(true);
  target.owns_tensors = false;  // each step writes them
  const at::NoGradGuard no_grad;
  const at::Tensor scores = scores_of(target.forward(target.first), options.model);
  learner.places = scores.sizes().slice(0, static_cast<size_t>(scores.dim() - 1)).vec();
  learner.classes = scores.size(-1);
  target.forward = [model = options.model, forward = std::move(target.forward)](const Tensors& inputs) {
    return c10::IValue(scores_of(forward(inputs), model));
  };
  return learner;
}

}  // namespace

Target make_training_target(const TargetOptions& options) {
  if (options.freeze) throw UserError("--train writes to what --freeze computes once; leave one out");
  const auto amp = autocast_dtype(options.amp);
  const Learner learner = is_file(options.model) ? file_learner(options) : built_in_learner(options);
  Target target = learner.target;
  target.twins.clear();
  target.draw = [learner] {
    Tensors inputs = learner.target.draw();
    inputs.push_back(draw_labels(learner));
    return inputs;
  };
  target.first.push_back(draw_labels(learner));
  target.forward = [amp, forward = std::move(target.forward),
                    optimizer = make_optimizer(options.optimizer, *target.module),
                    device = target.device.type()](const Tensors& inputs) {
    const Tensors images(inputs.begin(), inputs.end() - 1);
    optimizer->zero_grad();
    const at::Tensor loss = [&] {
      std::optional<Autocast> autocast;
      if (amp) autocast.emplace(device, *amp);
      const at::Tensor logits = forward(images).toTensor().flatten(0, -2);
      return at::cross_entropy_loss(logits, inputs.back().flatten());
    }();
    loss.backward();
    optimizer->step();
    return c10::IValue(loss.detach());
  };
  return target;
}

std::vector<Tensors> draw_calls(const Target& target, size_t count) {
  std::vector<Tensors> calls{target.first};
  while (calls.size() < count) calls.push_back(target.draw());
  return calls;
}

}  // namespace sinter::command
