#include <ATen/Context.h>
#include <fmt/format.h>

#include "compiler/support/errors.h"
#include "frontend/command/target.h"
#include "frontend/torch/convert.h"

namespace sinter::command {
namespace {

/// A file's model where the options want it.
Model load(const TargetOptions& options, at::Device device, std::optional<at::ScalarType> dtype) {
  Model model{std::filesystem::path(options.model)};
  model.to(device);
  if (dtype) model.to(*dtype);
  return model;
}

at::Tensor placed(const at::Tensor& tensor, at::Device device, std::optional<at::ScalarType> dtype) {
  const bool convert = dtype && tensor.is_floating_point();
  return tensor.to(device, convert ? *dtype : tensor.scalar_type());
}

/// Inputs that --input describes, drawn anew for every call.
Tensors drawn(const std::vector<bench::InputSpec>& specs, at::Device device, std::optional<at::ScalarType> dtype) {
  Tensors tensors;
  for (const bench::InputSpec& spec : specs) tensors.push_back(placed(bench::draw(spec, device), device, dtype));
  return tensors;
}

std::vector<bench::InputSpec> parse_specs(const TargetOptions& options) {
  std::vector<bench::InputSpec> specs;
  for (const std::string& text : options.inputs) {
    bench::InputSpec spec = bench::parse_input(text, specs.size() + 1);
    if (options.batch > 0 && !spec.sizes.empty()) spec.sizes[0] = options.batch;
    specs.push_back(std::move(spec));
  }
  return specs;
}

/// Arguments that come with the options or with the file.
Arguments arguments_of(const TargetOptions& options, const Model& model) {
  if (!options.inputs_file.empty()) return read_arguments(options.inputs_file);
  auto example = model.example();
  if (example) return {std::move(example->first), std::move(example->second)};
  if (!options.inputs.empty()) return {};
  throw UserError(options.model + ": the file does not say what it takes. Example: --input 'f32[1,3,224,224]'");
}

/// The same arguments around as many tensors as were described; without an example, tensors alone.
Arguments around(const Arguments& arguments, const Tensors& tensors, const TargetOptions& options) {
  const size_t wanted = tensors_in(arguments).size();
  if (wanted == tensors.size()) return with_tensors(arguments, tensors);
  if (wanted != 0) {
    throw UserError(fmt::format("{}: it takes {} tensor(s), {} given", options.model, wanted, tensors.size()));
  }
  Arguments plain;
  for (const at::Tensor& tensor : tensors) plain.positional.emplace_back(tensor);
  return plain;
}

Forward forward_of(Model model, Arguments arguments) {
  return [model = std::move(model), arguments = std::move(arguments)](const Tensors& inputs) {
    Arguments exchanged = with_tensors(arguments, inputs);
    return model.forward(std::move(exchanged.positional), std::move(exchanged.named));
  };
}

std::string stem(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace

Target make_file_target(const TargetOptions& options) {
  if (!options.settings.empty()) throw UserError("--set is for built-in models; a file has no settings");
  if (!options.weights.empty()) throw UserError("--weights is for built-in models; a file brings its own");
  const auto parsed = parse_float_dtype(options.dtype);
  const auto dtype = parsed ? std::optional(*frontend::scalar_type_of(*parsed)) : std::nullopt;
  Target target;
  target.name = stem(options.model);
  target.device = parse_device(options.device);
  at::manual_seed(options.seed);
  target.weights = parsed;
  const Model model = load(options, target.device, dtype);
  const std::vector<bench::InputSpec> specs = parse_specs(options);
  Arguments arguments = arguments_of(options, model);
  if (specs.empty()) {
    const Tensors given = tensors_in(arguments);
    target.draw = [given, dtype, device = target.device] {
      Tensors inputs;
      for (const at::Tensor& tensor : given) inputs.push_back(placed(tensor, device, dtype));
      return inputs;
    };
  } else {
    target.draw = [specs, dtype, device = target.device] { return drawn(specs, device, dtype); };
  }
  target.first = target.draw();
  arguments = around(arguments, target.first, options);
  target.forward = forward_of(model, arguments);
  target.module = model.module();
  for (const at::ScalarType wide : {at::kDouble, at::kFloat}) {
    target.twins.push_back({wide, [options, arguments, wide, device = target.device] {
                              return forward_of(load(options, device, wide), arguments);
                            }});
  }
  target.owns_tensors = true;
  return target;
}

}  // namespace sinter::command
