#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/support/errors.h"
#include "frontend/modes.h"

namespace sinter::frontend {

/// What a program may change for everybody without an operator: LibTorch's modes and the default generators of the CPU
/// and of the CUDA devices in use. Looked at before and after a recorded call.
class Surroundings {
 public:
  Surroundings();

  /// The break of a program, recorded as this graph, that left something changed.
  [[nodiscard]] std::optional<GraphBreak> changed(const ir::Graph& graph) const;

 private:
  struct Generator {
    at::Generator generator;
    uint64_t seed;
    at::Tensor state;

    /// Where it stands now.
    [[nodiscard]] static Generator of(at::Generator generator);
    /// True when it was seeded since; `drawn`: numbers were drawn from it.
    [[nodiscard]] bool was_seeded(bool drawn) const;
  };

  Modes modes_;
  std::vector<Generator> generators_;
};

}  // namespace sinter::frontend
