#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <mutex>
#include <utility>
#include <vector>

namespace sinter::frontend {

/// Where generators stand, so that they can be put back there.
class GeneratorStates {
 public:
  explicit GeneratorStates(const std::vector<at::Generator>& generators) {
    for (at::Generator generator : generators) {
      const std::lock_guard lock(generator.mutex());
      saved_.emplace_back(generator, generator.get_state());
    }
  }
  void rewind() {
    for (auto& [generator, state] : saved_) {
      const std::lock_guard lock(generator.mutex());
      generator.set_state(state);
    }
  }

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> saved_;
};

}  // namespace sinter::frontend
