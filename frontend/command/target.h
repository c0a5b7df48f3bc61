#pragma once

#include <ATen/core/Tensor.h>
#include <sinter/sinter.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/accuracy.h"
#include "bench/measure/inputs.h"
#include "compiler/ir/type.h"
#include "frontend/command/arguments.h"

namespace sinter::command {

/// What the options shared by run, bench, explain and dump say.
struct TargetOptions {
  std::string model;                  ///< name of a built-in model, or path of a file
  std::vector<std::string> inputs;    ///< empty: the model's own
  std::vector<std::string> settings;  ///< of the model's builder, "depth=2"
  std::string inputs_file;            ///< arguments that torch.save wrote; instead of `inputs`
  std::string weights;                ///< state dict for a built-in model
  std::string device;                 ///< "cpu", "cuda", "cuda:1"; empty: cuda if there is one
  std::string dtype;                  ///< converts the model and its float inputs; empty: as they are
  std::string mode = "default";
  std::string numerics = "fast";
  std::string replay = "automatic";  ///< or "checked" or "trusted"; automatic: trusted for files
  int64_t batch = 0;                 ///< replaces dim 0 of every input; 0: as they are
  uint64_t seed = 0;
  bool train = false;     ///< whole training steps instead of forward passes
  std::string amp;        ///< autocast's dtype in the forward pass of a step, "f16" or "bf16"; empty: none
  std::string optimizer;  ///< of a step: "sgd" (with momentum), "adamw" or "radam"
  bool freeze = false;
  bool strict = false;     ///< an InternalError ends the program instead of running eagerly
  bool fullgraph = false;  ///< a graph break ends the program instead of running eagerly
};

/// Runs a model on the tensors of one call.
using Forward = std::function<c10::IValue(const Tensors&)>;

/// The same model in a wider dtype.
struct Twin {
  at::ScalarType dtype;
  std::function<Forward()> build;
};

/// Results to measure others against, and the dtype that they were computed in.
struct Reference {
  Tensors tensors;
  at::ScalarType dtype;
};

/// A model on its device with the inputs it will be called with.
struct Target {
  std::string name;
  Forward forward;
  std::shared_ptr<torch::nn::Module> module;  ///< whose tensors and flags are watched; may be null
  std::vector<Twin> twins;                    ///< with the same weights, the widest first
  std::function<Tensors()> draw;              ///< inputs of one call
  Tensors first;                              ///< drawn once; says dtypes and sizes
  at::Device device{at::kCPU};
  std::optional<ir::DType> weights;  ///< dtype of its parameters, where known
  bool owns_tensors = false;         ///< nobody else can write to them

  [[nodiscard]] std::string shape() const;  ///< "f16[1,3,224,224], i64[8]"
  /// Of the first input that has floats, else what the model was converted to or is built in, else of the first input.
  [[nodiscard]] std::string dtype() const;
};

/// True for what names a file rather than a built-in model.
[[nodiscard]] bool is_file(const std::string& model);

/// Builds the model and checks every option. Throws UserError.
[[nodiscard]] Target make_target(const TargetOptions& options);

/// make_target for a built-in model, and for a file.
[[nodiscard]] Target make_built_in_target(const TargetOptions& options);
[[nodiscard]] Target make_file_target(const TargetOptions& options);

/// make_target for whole training steps: forward (under autocast), cross entropy, backward and the optimizer's step on
/// parameters in f32; `forward` gives the loss, and labels are its last input. A file is run once, to see how many
/// classes its first result has; the train or eval mode that it was saved in stays. Calls need grad mode.
[[nodiscard]] Target make_training_target(const TargetOptions& options);

/// Inputs of several calls: those that the target came with, and others that it draws.
[[nodiscard]] std::vector<Tensors> draw_calls(const Target& target, size_t count);

/// What --dtype names; nothing where it is empty. Throws UserError for what is no float.
[[nodiscard]] std::optional<ir::DType> parse_float_dtype(const std::string& text);

[[nodiscard]] Options compile_options(const TargetOptions& options, const Target& target);
/// The same without a budget, for looking at steady calls: nothing waits until compiling it has paid.
[[nodiscard]] Options steady_options(const TargetOptions& options, const Target& target);

/// One call of a compiled model. Throws UserError with the module path and the first line of LibTorch's message when
/// the model refuses its inputs.
[[nodiscard]] c10::IValue call(const sinter::Compiled<Forward>& compiled, const Tensors& inputs);

/// Results of the first twin that runs and is wider than `eager`: a model may name dtypes of its own, or call operators
/// that do not know float64. Nothing where none does.
[[nodiscard]] std::optional<Reference> reference_for(const Target& target, const Tensors& inputs, const Tensors& eager);

/// Results of one call beside eager's.
struct Judged {
  bench::Accuracy accuracy;  ///< of the worst tensor
  std::string reference;     ///< "float64", "float32", or "eager" where no twin runs
};
[[nodiscard]] Judged judge(const Target& target, const c10::IValue& compiled, const Tensors& inputs);

/// The same for training: how far several compiled steps move parameters and buffers, beside eager's steps, from the
/// same start on the same inputs. The reference is float64, or eager where a step draws random numbers.
[[nodiscard]] Judged judge_training(const TargetOptions& options);

/// Losses of training steps, compiled beside eager.
struct Losses {
  int64_t steps = 0;
  double first = 0;
  double last = 0;
  double eager_last = 0;
  double largest_difference = 0;  ///< |compiled - eager| / |eager|; not a number where a loss is none
};

/// `steps` steps from the same start on the same few batches, first eager, then compiled in the options' mode. One
/// model at a time is alive.
[[nodiscard]] Losses losses_over_steps(const TargetOptions& options, int64_t steps);

/// The least accurate of several tensors; not ok where there are not as many everywhere.
[[nodiscard]] bench::Accuracy worst_of(const Tensors& compiled, const Tensors& eager, const Tensors& reference);

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
