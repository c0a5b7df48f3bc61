#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
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

/// The calling thread's current CUDA device, and its current stream on every device in use.
struct CudaPlace {
  [[nodiscard]] static CudaPlace current();

  int device = -1;                                     ///< -1: there is none
  std::vector<std::pair<int, c10::StreamId>> streams;  ///< by device
};

/// What a program may change for everybody without an operator: LibTorch's modes, the current CUDA device and streams,
/// and default generators, those of CUDA devices in use included. Looked at before and after a recorded call.
class Surroundings {
 public:
  Surroundings();

  /// The CUDA device that was current then; -1: there is none.
  [[nodiscard]] int cuda_device() const { return place_.device; }
  /// The break of a recorded program that left something changed.
  [[nodiscard]] std::optional<GraphBreak> changed_by(const Trace& trace) const;

 private:
  Modes modes_;
  CudaPlace place_;
  WatchedGenerators generators_;
};

}  // namespace sinter::frontend
