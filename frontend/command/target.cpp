#include "frontend/command/target.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "compiler/support/errors.h"
#include "frontend/convert.h"

namespace sinter::command {
namespace {

ir::DType parse_float_dtype(const std::string& text) {
  const auto dtype = ir::parse_dtype(text);
  if (!dtype || !ir::is_float(*dtype))
    throw UserError(fmt::format("dtype '{}' is unknown. Known: f32, f16, bf16, f64", text));
  return *dtype;
}

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

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

UserError cannot_write(const std::string& path) {
  return UserError(fmt::format("{}: cannot be written: {}. Name another file", path, std::strerror(errno)));
}

}  // namespace

std::string Target::shape() const {
  std::string text;
  for (const bench::InputSpec& spec : specs) text += (text.empty() ? "" : ", ") + bench::to_string(spec);
  return text;
}

std::string Target::dtype() const { return std::string(ir::name(specs.front().dtype)); }

Mode parse_mode(const std::string& text) {
  if (text == "default") return Mode::Default;
  if (text == "reduce-overhead") return Mode::ReduceOverhead;
  if (text == "max-autotune") return Mode::MaxAutotune;
  throw UserError(fmt::format("mode '{}' is unknown. Known: default, reduce-overhead, max-autotune", text));
}

at::Device parse_device(const std::string& text) {
  const int gpus = c10::cuda::device_count();
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

Target make_target(const TargetOptions& options) {
  Target target;
  target.row = &bench::find_model(options.model);
  (void)parse_mode(options.mode);
  target.device = parse_device(options.device);
  target.specs = parse_inputs(options, *target.row);
  at::manual_seed(options.seed);
  bench::Settings settings;
  for (const std::string& text : options.settings) settings.push_back(bench::parse_setting(text));
  target.model = bench::build(*target.row, settings);

  ir::DType dtype = target.specs.front().dtype;
  if (!options.dtype.empty()) {
    dtype = parse_float_dtype(options.dtype);
    for (bench::InputSpec& spec : target.specs) {
      if (ir::is_float(spec.dtype)) spec.dtype = dtype;
    }
  }
  if (target.model.module) {
    target.model.module->to(target.device);
    if (ir::is_float(dtype)) bench::convert(*target.model.module, *frontend::scalar_type_of(dtype));
  }
  return target;
}

Options compile_options(const TargetOptions& options, const Target& target) {
  if (options.numerics != "fast" && options.numerics != "eager") {
    throw UserError(fmt::format("numerics '{}' is unknown. Known: fast, eager", options.numerics));
  }
  Options result;
  result.mode = parse_mode(options.mode);
  result.numerics = options.numerics == "eager" ? Numerics::eager : Numerics::fast;
  result.freeze = options.freeze;
  result.strict = options.strict;
  result.fullgraph = options.fullgraph;
  result.name = options.model;
  if (target.model.module) result.modules = {{options.model, target.model.module}};
  return result;
}

at::Tensor call(const sinter::Compiled<Forward>& compiled, const Inputs& inputs) {
  try {
    return compiled(inputs);
  } catch (const c10::Error& error) {
    const Report report = compiled.report();
    const std::string& where = report.failed_at.empty() ? report.function : report.failed_at;
    throw UserError(
        fmt::format("{}: the model refused its input: {}", where, first_line(error.what_without_backtrace())));
  }
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
