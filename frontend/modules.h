#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/support/report.h"
#include "frontend/capture.h"
#include "frontend/private_layout.h"

namespace torch::nn {
class Module;
}

namespace sinter::frontend {

/// A module and the name that stands before those of its parts; empty for the compiled module itself.
using NamedModule = std::pair<std::string, std::shared_ptr<torch::nn::Module>>;

/// Class name without namespaces and "Impl": "ResNet50".
[[nodiscard]] std::string class_name(const torch::nn::Module& module);

/// Parameters and buffers of the modules, those of submodules included.
[[nodiscard]] std::vector<NamedTensor> named_tensors(const std::vector<NamedModule>& modules);

/// Where a module's train flag lies; null where only `is_training` tells, as a class has put a function of its own in
/// its place.
[[nodiscard]] const bool* train_flag_of(const torch::nn::Module& module);

/// The train flags of modules and all their submodules at one time. Holds the modules weakly: a submodule that was
/// replaced must be able to die.
class TrainFlags {
 public:
  TrainFlags() = default;
  explicit TrainFlags(const std::vector<NamedModule>& modules, const PrivateLayout& layout = PrivateLayout::here());

  [[nodiscard]] bool hold() const;
  /// True when a module is gone: the flags will never hold again.
  [[nodiscard]] bool lost() const;
  [[nodiscard]] std::vector<GuardMiss> misses() const;
  [[nodiscard]] std::vector<std::string> describe() const;

 private:
  /// What a check reads; names lie elsewhere.
  struct Flag {
    std::weak_ptr<torch::nn::Module> module;
    const bool* member;  ///< valid while `module` has not expired; null where only `is_training` tells
    bool training;

    [[nodiscard]] bool holds_as_told() const;
  };
  std::vector<Flag> flags_;
  std::vector<std::string> names_;  ///< by flag
};

}  // namespace sinter::frontend
