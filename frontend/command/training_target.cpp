#include <ATen/autocast_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "bench/models/labels.h"
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
  throw UserError(fmt::format("optimizer '{}' is unknown. Known: sgd, adamw", name));
}

/// Labels for inputs whose first one is `input`.
at::Tensor draw_labels(const at::Tensor& input, bench::Labels labels) {
  bench::InputSpec spec{.dtype = ir::DType::i64, .sizes = input.sizes().slice(0, labels.dims).vec()};
  spec.below = labels.classes;
  return bench::draw(spec, input.device());
}

}  // namespace

Target make_training_target(const TargetOptions& options) {
  if (is_file(options.model)) throw UserError("--train is for built-in models (sinter models)");
  const bench::Labels labels = bench::labels_of(options.model);
  if (labels.classes == 0) throw UserError(fmt::format("model '{}' has no parameters to train", options.model));
  if (options.freeze) throw UserError("--train writes to what --freeze computes once; leave one out");
  const auto amp = autocast_dtype(options.amp);
  Target target = make_built_in_target(options);
  target.module->train();
  target.twins.clear();
  target.draw = [labels, draw = std::move(target.draw)] {
    Tensors inputs = draw();
    inputs.push_back(draw_labels(inputs.front(), labels));
    return inputs;
  };
  target.first.push_back(draw_labels(target.first.front(), labels));
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

}  // namespace sinter::command
