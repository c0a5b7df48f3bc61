#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/MT19937RNGEngine.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "frontend/capture.h"

namespace sinter::frontend {

/// True for the generator that LibTorch draws from on its device where a call is given none.
[[nodiscard]] bool is_default(const at::Generator& generator);

/// The generators that the recorded calls draw from: those they were given, else those of their results' devices.
[[nodiscard]] std::vector<at::Generator> generators_of(const Trace& trace);

/// Where generators stand, so that a call which begins again draws the same numbers.
class GeneratorStates {
 public:
  explicit GeneratorStates(const std::vector<at::Generator>& generators);
  void rewind();

 private:
  /// A generator of the CPU: its engine, and the second half of a pair of normal samples.
  struct CpuState {
    at::mt19937 engine;
    std::optional<float> next_float;
    std::optional<double> next_double;
  };
  using CudaOffset = uint64_t;
  using WholeState = at::Tensor;  ///< of generators of another kind
  struct Saved {
    at::Generator generator;
    std::variant<CpuState, CudaOffset, WholeState> state;
  };
  [[nodiscard]] static Saved save(at::Generator generator);
  static void rewind(Saved& saved);

  std::vector<Saved> saved_;
};

}  // namespace sinter::frontend
