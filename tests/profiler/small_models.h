#pragma once

#include <sinter/profile.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

/// Models whose modules, lines and phases are known by heart.
namespace sinter::test {

/// A program, the modules it closes over and lines of its source.
struct SmallProgram {
  std::shared_ptr<torch::nn::Module> module;
  std::function<void(const at::Tensor&)> step;
  std::string residual_line;  ///< of the sum at the end of each block
  std::string drop_line;      ///< of the gather in `drop`
};

/// A whole training step: `drop` without parameters, three blocks in a Sequential, a head; a squared error, SGD with
/// momentum. Takes [batch, 32].
[[nodiscard]] SmallProgram training_step(at::Device device = at::kCPU);

/// Paths of all its modules.
[[nodiscard]] std::vector<std::string> small_paths();

/// The profile of a step of it.
[[nodiscard]] Profile profile_of(const SmallProgram& program, const at::Tensor& x, ProfileOptions options = {});

}  // namespace sinter::test
