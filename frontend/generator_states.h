#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "frontend/capture.h"

namespace sinter::frontend {

/// The generators that the recorded calls draw from: those they were given, else those of their results' devices.
[[nodiscard]] std::vector<at::Generator> generators_of(const Trace& trace);

/// Where generators stand, so that a call which begins again draws the same numbers.
class GeneratorStates {
 public:
  explicit GeneratorStates(const std::vector<at::Generator>& generators);
  void rewind();

 private:
  struct Saved {
    at::Generator generator;
    at::Tensor state;     ///< of a generator of the CPU
    uint64_t offset = 0;  ///< of one of CUDA
  };
  std::vector<Saved> saved_;
};

}  // namespace sinter::frontend
