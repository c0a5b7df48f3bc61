#include "frontend/command/target.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <fmt/ranges.h>
#include <torch/nn/module.h>
#include <limits>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "compiler/support/errors.h"
#include "compiler/support/first_line.h"
#include "frontend/torch/convert.h"
#include "frontend/torch/cuda.h"

namespace sinter::command {
namespace {

/// The line that says what went wrong. TorchScript puts its own traceback before it.
std::string reason_of(const std::string& text) {
  constexpr std::string_view mark = "RuntimeError: ";
  const size_t found = text.rfind(mark);
  return first_line(found == std::string::npos ? text : text.substr(found + mark.size()));
}

std::string name_of(at::ScalarType dtype) { return dtype == at::kDouble ? "float64" : "float32"; }

bool any_half(const Tensors& tensors) {
  return std::ranges::any_of(tensors, [](const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
  });
}

/// True where a twin in float32 knows more than these results do, which may be wide though their model is not.
bool computes_in_halves(const Target& target, const Tensors& inputs, const Tensors& results) {
  return any_half(results) || any_half(inputs) || (target.module && any_half(target.module->parameters()));
}

std::optional<Tensors> results_of(const Twin& twin, const Tensors& inputs) {
  Tensors wide;
  for (const at::Tensor& input : inputs) wide.push_back(input.is_floating_point() ? input.to(twin.dtype) : input);
  try {
    return tensors_in(twin.build()(wide));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

UserError cannot_write(const std::string& path) {
  return UserError(fmt::format("{}: cannot be written: {}. Name another file", path, std::strerror(errno)));
}

Replay parse_replay(const std::string& text, bool is_file) {
  if (text == "automatic") return is_file ? Replay::trusted : Replay::checked;
  if (text == "checked") return Replay::checked;
  if (text == "trusted") return Replay::trusted;
  throw UserError(fmt::format("replay '{}' is unknown. Known: automatic, checked, trusted", text));
}

}  // namespace

std::string Target::shape() const {
  std::string text;
  for (const at::Tensor& tensor : first) {
    const std::string_view type = ir::name(frontend::dtype_of(tensor.scalar_type()));
    text += fmt::format("{}{}[{}]", text.empty() ? "" : ", ", type, fmt::join(tensor.sizes(), ","));
  }
  return text;
}

std::string Target::dtype() const {
  if (first.empty()) return "none";
  const auto found = std::ranges::find_if(first, [](const at::Tensor& tensor) { return tensor.is_floating_point(); });
  if (found == first.end() && weights) return std::string(ir::name(*weights));
  const at::Tensor& tensor = found == first.end() ? first.front() : *found;
  return std::string(ir::name(frontend::dtype_of(tensor.scalar_type())));
}

bool is_file(const std::string& model) {
  return model.find('/') != std::string::npos || model.ends_with(".pt") || model.ends_with(".pt2");
}

Mode parse_mode(const std::string& text) {
  if (text == "default") return Mode::Default;
  if (text == "reduce-overhead") return Mode::ReduceOverhead;
  if (text == "max-autotune") return Mode::MaxAutotune;
  throw UserError(fmt::format("mode '{}' is unknown. Known: default, reduce-overhead, max-autotune", text));
}

at::Device parse_device(const std::string& text) {
  const int gpus = frontend::cuda::device_count();
  if (text.empty()) return gpus > 0 ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  if (text == "cpu") return at::Device(at::kCPU);
  const bool numbered = text.starts_with("cuda:") && text.size() > 5 && text.size() < 8 &&
                        text.find_first_not_of("0123456789", 5) == std::string::npos;
  if (text != "cuda" && !numbered)
    throw UserError(fmt::format("device '{}' is unknown. Known: cpu, cuda, cuda:0", text));
  const int index = numbered ? std::stoi(text.substr(5)) : 0;
  if (index >= gpus)
    throw UserError(fmt::format("device '{}' is not here: this machine has {} GPU(s). Use --device cpu", text, gpus));
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
}

std::optional<ir::DType> parse_float_dtype(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto dtype = ir::parse_dtype(text);
  if (!dtype || !ir::is_float(*dtype)) {
    throw UserError(fmt::format("dtype '{}' is unknown. Known: f32, f16, bf16, f64", text));
  }
  return dtype;
}

Target make_target(const TargetOptions& options) {
  (void)parse_mode(options.mode);
  if (!options.inputs_file.empty() && !options.inputs.empty()) {
    throw UserError("--inputs and --input both name the inputs; leave one out");
  }
  if (options.train) return make_training_target(options);
  if (!options.amp.empty() || !options.optimizer.empty()) throw UserError("--amp and --optimizer belong to --train");
  return is_file(options.model) ? make_file_target(options) : make_built_in_target(options);
}

Options compile_options(const TargetOptions& options, const Target& target) {
  if (options.numerics != "fast" && options.numerics != "eager") {
    throw UserError(fmt::format("numerics '{}' is unknown. Known: fast, eager", options.numerics));
  }
  Options result;
  result.mode = parse_mode(options.mode);
  result.numerics = options.numerics == "eager" ? Numerics::eager : Numerics::fast;
  result.replay = parse_replay(options.replay, target.owns_tensors);
  result.freeze = options.freeze || target.owns_tensors;
  result.strict = options.strict;
  result.fullgraph = options.fullgraph;
  result.name = target.name;
  if (target.module) result.modules = {{"", target.module}};
  return result;
}

Options steady_options(const TargetOptions& options, const Target& target) {
  Options result = compile_options(options, target);
  result.compile_budget = std::numeric_limits<double>::infinity();
  return result;
}

c10::IValue call(const sinter::Compiled<Forward>& compiled, const Tensors& inputs) {
  const auto refused = [&](const std::string& text) {
    const Report report = compiled.report();
    const std::string& where = report.failed_at.empty() ? report.function : report.failed_at;
    return UserError(fmt::format("{}: the model refused its input: {}", where, reason_of(text)));
  };
  try {
    return compiled(inputs);
  } catch (const c10::Error& error) {
    throw refused(error.what_without_backtrace());
  } catch (const UserError&) {
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const std::runtime_error& error) {  // TorchScript's own
    throw refused(error.what());
  }
}

std::optional<Reference> reference_for(const Target& target, const Tensors& inputs, const Tensors& eager) {
  for (const Twin& twin : target.twins) {
    if (twin.dtype != at::kDouble && !computes_in_halves(target, inputs, eager)) continue;
    if (auto results = results_of(twin, inputs)) return Reference{std::move(*results), twin.dtype};
  }
  return std::nullopt;
}

Judged judge(const Target& target, const c10::IValue& compiled, const Tensors& inputs) {
  const Tensors eager = tensors_in(target.forward(inputs));
  const auto reference = reference_for(target, inputs, eager);
  return {worst_of(tensors_in(compiled), eager, reference ? reference->tensors : eager),
          reference ? name_of(reference->dtype) : "eager"};
}

bench::Accuracy worst_of(const Tensors& compiled, const Tensors& eager, const Tensors& reference) {
  bench::Accuracy worst{.ok = compiled.size() == eager.size() && eager.size() == reference.size()};
  for (size_t i = 0; worst.ok && i < compiled.size(); ++i) {
    const bench::Accuracy accuracy = bench::compare(compiled[i], eager[i], reference[i]);
    if (i == 0 || !accuracy.ok || accuracy.max_error > worst.max_error) worst = accuracy;
  }
  return worst;
}

void check_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  const bool was_there = std::filesystem::exists(path);
  errno = 0;
  if (!std::ofstream(path, std::ios::app)) throw cannot_write(path);
  if (!was_there) std::filesystem::remove(path);
}

void write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text << "\n";
    return;
  }
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw cannot_write(path);
}

}  // namespace sinter::command
