#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/emulator/emulator.h"

namespace sinter::test {

struct Sizes {
  unsigned x = 1, y = 1, z = 1;
};

/// A kernel written by hand for a test. The text starts at its line 1.
[[nodiscard]] inline KernelSource written(std::string name, Sizes grid, Sizes block, std::string text) {
  KernelSource source;
  source.name = std::move(name);
  source.text = std::move(text);
  source.grid = {grid.x, grid.y, grid.z};
  source.block = {block.x, block.y, block.z};
  return source;
}

/// Kernels of one test program, compiled together and run by name.
class Texts {
 public:
  explicit Texts(std::vector<KernelSource> sources) : sources_(std::move(sources)), emulator_(sources_) {}

  void run(std::string_view name, const std::vector<EmulatedArg>& args, size_t dynamic_shared_bytes = 0) const {
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i].name == name) return emulator_.run(i, args, dynamic_shared_bytes);
    }
    throw std::out_of_range(std::string(name));
  }

 private:
  std::vector<KernelSource> sources_;
  Emulator emulator_;
};

}  // namespace sinter::test
