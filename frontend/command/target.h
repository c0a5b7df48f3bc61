#pragma once

#include <ATen/core/Tensor.h>
#include <sinter/sinter.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/measure/inputs.h"
#include "bench/models/model.h"

namespace sinter::command {

/// What the options shared by run, bench, explain and dump say.
struct TargetOptions {
  std::string model;
  std::vector<std::string> inputs;    ///< empty: the model's own
  std::vector<std::string> settings;  ///< of the model's builder, "depth=2"
  std::string device;                 ///< "cpu", "cuda", "cuda:1"; empty: cuda if there is one
  std::string dtype;                  ///< converts the model and its float inputs; empty: as they are
  std::string mode = "default";
  std::string numerics = "fast";
  int64_t batch = 0;  ///< replaces dim 0 of every input; 0: as they are
  uint64_t seed = 0;
  bool freeze = false;
  bool strict = false;     ///< an InternalError ends the program instead of running eagerly
  bool fullgraph = false;  ///< a graph break ends the program instead of running eagerly
};

/// A model on its device with the inputs it will be called with.
struct Target {
  const bench::ModelRow* row = nullptr;
  bench::Model model;
  std::vector<bench::InputSpec> specs;
  at::Device device{at::kCPU};

  [[nodiscard]] std::string shape() const;  ///< "f16[1,3,224,224], i64[8]"
  [[nodiscard]] std::string dtype() const;  ///< of the first input
};

/// Inputs of one call.
using Inputs = std::vector<at::Tensor>;
using Forward = std::function<at::Tensor(const Inputs&)>;

/// Builds the model and checks every option. Throws UserError.
[[nodiscard]] Target make_target(const TargetOptions& options);

[[nodiscard]] Options compile_options(const TargetOptions& options, const Target& target);

/// One call of a compiled model. Throws UserError with the module path and the first line of LibTorch's message when
/// the model refuses its inputs.
[[nodiscard]] at::Tensor call(const sinter::Compiled<Forward>& compiled, const Inputs& inputs);

/// "default", "reduce-overhead" or "max-autotune". Throws UserError on anything else.
[[nodiscard]] Mode parse_mode(const std::string& text);

/// The named device, or the first GPU, or the CPU. Throws UserError for a GPU that is not there.
[[nodiscard]] at::Device parse_device(const std::string& text);

/// Throws UserError saying why `path` cannot be written, before work is done that would end there. Leaves a file that
/// is there as it is. Empty and "-" (standard output) always can.
void check_writable(const std::string& path);

/// Writes `text`, or throws UserError saying why it cannot be written. "-" is standard output.
void write_file(const std::string& path, const std::string& text);

}  // namespace sinter::command
