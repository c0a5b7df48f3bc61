#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sinter::frontend {

/// Arguments of a call of a model.
struct FileArguments {
  std::vector<c10::IValue> positional;
  std::map<std::string, c10::IValue> named;
};

/// A tensor of a model by its path: "layer1.0.conv1.weight".
struct FileTensor {
  std::string name;
  at::Tensor tensor;
  bool is_parameter = false;
};

/// A model that came from a file, or from LibTorch's own reader of one: run operator by operator through the
/// dispatcher. Calls from several threads are correct; `to` must not run beside calls.
class FileProgram {
 public:
  virtual ~FileProgram() = default;

  /// Throws UserError where the arguments are not what the model takes.
  [[nodiscard]] virtual c10::IValue run(const FileArguments& arguments) = 0;
  /// Moves the model's tensors, and what its code says about the device they were on.
  virtual void to(at::Device device) = 0;
  /// Converts floating-point parameters, buffers and constants. Where all parameters had one dtype and get a wider one,
  /// so do the dtypes that the program of a .pt2 file names by it.
  virtual void to(at::ScalarType dtype) = 0;
  [[nodiscard]] virtual std::vector<FileTensor> tensors() const = 0;
  /// Paths of modules that know train and eval mode, and how to ask them.
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::function<bool()>>> train_flags() const { return {}; }
  /// "Net", or the file's name where it names no class.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Arguments to try it with: those that were saved with it, or drawn to fit what it says about them. Nothing where
  /// the file says nothing.
  [[nodiscard]] virtual std::optional<FileArguments> example() const = 0;
};

}  // namespace sinter::frontend
