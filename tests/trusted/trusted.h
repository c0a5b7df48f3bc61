#pragma once

#include <ATen/ATen.h>

#include <limits>

#include "tests/api/where.h"

namespace sinter::test {

/// Checked calls that a program needs until it is known: the first is recorded, and the two after it have to agree.
inline constexpr int kLearning = 3;

class Trusted : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    at::manual_seed(7);
  }

  [[nodiscard]] Options options() const {
    Options options;
    options.mode = GetParam().mode;
    options.replay = Replay::trusted;
    options.strict = true;
    options.compile_budget = std::numeric_limits<double>::infinity();
    return options;
  }
  [[nodiscard]] at::Tensor random(at::IntArrayRef sizes) const { return at::randn(sizes, at::TensorOptions(device())); }
  [[nodiscard]] at::Device device() const { return GetParam().device; }
};

}  // namespace sinter::test
