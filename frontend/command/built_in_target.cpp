#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <map>

#include "bench/models/model.h"
#include "compiler/support/errors.h"
#include "frontend/command/target.h"
#include "frontend/torch/convert.h"

namespace sinter::command {
namespace {

std::vector<bench::InputSpec> parse_inputs(const TargetOptions& options, const bench::ModelRow& row) {
  const std::vector<std::string>& texts = options.inputs.empty() ? row.inputs : options.inputs;
  if (texts.size() != row.inputs.size()) {
    throw UserError(fmt::format("model '{}' takes {} input(s), {} given. Example: --input '{}'", row.name,
                                row.inputs.size(), texts.size(), row.inputs.front()));
  }
  std::vector<bench::InputSpec> specs;
  for (const std::string& text : texts) {
    bench::InputSpec spec = bench::parse_input(text, specs.size() + 1);
    if (options.batch > 0 && !spec.sizes.empty()) spec.sizes[0] = options.batch;
    specs.push_back(std::move(spec));
  }
  return specs;
}

/// The dtype that the model is converted to: --dtype, or that of the inputs if they are floats.
std::optional<ir::DType> model_dtype(const TargetOptions& options, std::vector<bench::InputSpec>& specs) {
  if (const auto dtype = parse_float_dtype(options.dtype)) {
    for (bench::InputSpec& spec : specs) {
      if (ir::is_float(spec.dtype)) spec.dtype = *dtype;
    }
    return dtype;
  }
  return ir::is_float(specs.front().dtype) ? std::optional(specs.front().dtype) : std::nullopt;
}

/// Copies a state dict into a model, by name.
void load_weights(torch::nn::Module& module, const std::string& path) {
  std::map<std::string, at::Tensor> wanted;
  for (const auto& item : module.named_parameters()) wanted[item.key()] = item.value();
  for (const auto& item : module.named_buffers()) wanted[item.key()] = item.value();
  std::vector<std::string> extra;
  std::vector<std::string> misshapen;
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : read_state(path)) {
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      extra.push_back(name);
    } else if (found->second.sizes() != tensor.sizes()) {
      misshapen.push_back(fmt::format("{} is [{}], not [{}]", name, fmt::join(tensor.sizes(), ","),
                                      fmt::join(found->second.sizes(), ",")));
      wanted.erase(found);
    } else {
      found->second.copy_(tensor);
      wanted.erase(found);
    }
  }
  std::vector<std::string> problems;
  std::vector<std::string> missing;
  for (const auto& [name, tensor] : wanted) missing.push_back(name);
  if (!missing.empty()) problems.push_back(fmt::format("missing: {}", fmt::join(missing, ", ")));
  if (!extra.empty()) problems.push_back(fmt::format("not in the model: {}", fmt::join(extra, ", ")));
  if (!misshapen.empty()) problems.push_back(fmt::format("of another shape: {}", fmt::join(misshapen, ", ")));
  if (!problems.empty()) throw UserError(fmt::format("{}: {}", path, fmt::join(problems, "; ")));
}

Forward forward_of(const bench::Model& model) {
  return [forward = model.forward](const Tensors& inputs) { return c10::IValue(forward(inputs)); };
}

}  // namespace

Target make_built_in_target(const TargetOptions& options) {
  const bench::ModelRow& row = bench::find_model(options.model);
  Target target;
  target.name = options.model;
  target.device = parse_device(options.device);
  auto specs = parse_inputs(options, row);
  const auto dtype = model_dtype(options, specs);
  at::manual_seed(options.seed);
  bench::Settings settings;
  for (const std::string& text : options.settings) settings.push_back(bench::parse_setting(text));
  const bench::Model model = bench::build(row, settings);
  if (!options.weights.empty()) {
    if (!model.module) throw UserError(fmt::format("model '{}' has no weights to load", row.name));
    load_weights(*model.module, options.weights);
  }
  if (model.module) {
    model.module->to(target.device);
    if (dtype) bench::convert(*model.module, *frontend::scalar_type_of(*dtype));
  }
  target.forward = forward_of(model);
  target.module = model.module;
  if (model.module) target.weights = dtype.value_or(ir::DType::f32);
  target.twins.push_back({at::kDouble, [&row, model, device = target.device] {
                            const bench::Model twin = bench::in_float64(row, model);
                            if (twin.module) twin.module->to(device);
                            return forward_of(twin);
                          }});
  target.draw = [specs, device = target.device] {
    Tensors inputs;
    for (const bench::InputSpec& spec : specs) inputs.push_back(bench::draw(spec, device));
    return inputs;
  };
  if (!options.inputs_file.empty()) {
    const Tensors saved = tensors_in(read_arguments(options.inputs_file));
    if (saved.size() != specs.size()) {
      throw UserError(fmt::format("{}: model '{}' takes {} input(s), {} saved", options.inputs_file, row.name,
                                  specs.size(), saved.size()));
    }
    target.draw = [saved, dtype, device = target.device] {
      Tensors inputs;
      for (const at::Tensor& tensor : saved) {
        const bool convert = dtype && tensor.is_floating_point();
        inputs.push_back(tensor.to(device, convert ? *frontend::scalar_type_of(*dtype) : tensor.scalar_type()));
      }
      return inputs;
    };
  }
  target.first = target.draw();
  return target;
}

}  // namespace sinter::command
