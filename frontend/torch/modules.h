#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/torch/tensor_memory.h"

namespace torch::nn {
class Module;
}

namespace sinter::frontend {

/// A module and the name that stands before those of its parts; empty for the compiled module itself.
using NamedModule = std::pair<std::string, std::shared_ptr<torch::nn::Module>>;

/// A tensor that a module owns.
struct NamedTensor {
  std::string name;    ///< "layer1.0.bn1.weight"
  std::string module;  ///< "layer1.0.bn1"
  WeakTensor tensor;
};

/// Class name without namespaces and "Impl": "ResNet50".
[[nodiscard]] std::string class_name(const torch::nn::Module& module);

/// Parameters and buffers of the modules, those of submodules included.
[[nodiscard]] std::vector<NamedTensor> named_tensors(const std::vector<NamedModule>& modules);

}  // namespace sinter::frontend
