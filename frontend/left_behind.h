#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/support/errors.h"
#include "frontend/capture.h"
#include "frontend/modes.h"

namespace sinter::frontend {

/// Where generators stand before a recorded call: a seed that the callable sets leaves no operator behind, so replays
/// would draw on.
class WatchedGenerators {
 public:
  explicit WatchedGenerators(std::span<const at::Generator> generators);

  /// The break of a recorded program that seeded one of them.
  [[nodiscard]] std::optional<GraphBreak> seeded_by(const Trace& trace) const;

 private:
  struct Watched {
    at::Generator generator;
    uint64_t seed;
    at::Tensor state;
  };
  [[nodiscard]] static Watched look_at(at::Generator generator);

  std::vector<Watched> generators_;
};

/// What a program may change for everybody without an operator: LibTorch's modes and its default generators, those of
/// CUDA devices in use included. Looked at before and after a recorded call.
class Surroundings {
 public:
  Surroundings();

  /// The break of a recorded program that left something changed.
  [[nodiscard]] std::optional<GraphBreak> changed_by(const Trace& trace) const;

 private:
  Modes modes_;
  WatchedGenerators generators_;
};

}  // namespace sinter::frontend
