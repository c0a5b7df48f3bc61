#pragma once

#include <ATen/core/ivalue.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/detail/flatten.h"

namespace torch::jit {
struct Module;
}
namespace torch::nn {
class Module;
}

namespace sinter {

namespace frontend {
class FileProgram;
}

/// Named arguments of a model, last in a call: `fast(x, sinter::Kwargs{{{"scale", 2.0}}})`.
struct Kwargs {
  std::map<std::string, c10::IValue> values;
};

/// A model that came from a file: `.pt2` of torch.export, or TorchScript. Called, it runs operator by operator, as
/// eager code does; sinter::compile takes it like any callable. Copies share the model. Calls from several threads are
/// correct.
class Model {
 public:
  /// Reads a file to the CPU. Code in pickles is never run. Throws UserError, in one line that names the path, for a
  /// file that is missing, damaged, unsafe to unpack, of a schema or with operators that are not known here.
  explicit Model(const std::filesystem::path& file);
  /// Wraps a TorchScript module, which stays the caller's too.
  explicit Model(const torch::jit::Module& module);

  /// Moves tensors, and what the program says about the device they were on. Only before the first call.
  Model& to(at::Device device);
  /// Converts floating-point parameters, buffers and constants, as torch::nn::Module::to does; a dtype that the program
  /// itself names stays. Only before the first call.
  Model& to(at::ScalarType dtype);

  /// Arguments as the Python model takes them: tensors, scalars, strings, and lists, tuples and dicts of them, and
  /// Kwargs last. The result likewise. Throws UserError where they are not what the model takes; LibTorch's exceptions
  /// pass.
  template <class... Args>
  c10::IValue operator()(const Args&... args) const {
    std::vector<c10::IValue> positional;
    Kwargs named;
    (add(positional, named, args), ...);
    return forward(std::move(positional), std::move(named));
  }
  [[nodiscard]] c10::IValue forward(std::vector<c10::IValue> positional, Kwargs named = {}) const;

  /// Class of the Python module.
  [[nodiscard]] std::string name() const;
  /// Parameters and buffers under their names: a view of the model's own tensors.
  [[nodiscard]] std::shared_ptr<torch::nn::Module> module() const;
  /// Arguments to try it with, as saved in the file or drawn to fit it; nothing where the file says nothing.
  [[nodiscard]] std::optional<std::pair<std::vector<c10::IValue>, Kwargs>> example() const;

 private:
  template <class T>
  static void add(std::vector<c10::IValue>& positional, Kwargs& named, const T& value) {
    if constexpr (std::is_same_v<T, Kwargs>) {
      named = value;
    } else {
      positional.emplace_back(value);
    }
  }

  std::shared_ptr<frontend::FileProgram> program_;
};

/// What torch.save wrote into a file: tensors on the CPU, numbers, strings, and lists, tuples and dicts of them. Code
/// in the pickle is never run. Throws UserError, in one line that names the path.
[[nodiscard]] c10::IValue read_saved(const std::filesystem::path& file);

namespace detail {
inline void flatten_kwargs(Flat& flat, const Kwargs& kwargs) { flatten_map(flat, kwargs.values); }
}  // namespace detail

}  // namespace sinter
