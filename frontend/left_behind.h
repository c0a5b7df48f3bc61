#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "compiler/support/errors.h"
#include "frontend/modes.h"

namespace sinter::frontend {

/// What a program may change for everybody without an operator: LibTorch's modes and the default generator of the CPU,
/// which every seed reaches. Looked at before and after a recorded call.
class Surroundings {
 public:
  Surroundings();

  /// The break of a program that left something changed; `draws`: it drew from a generator.
  [[nodiscard]] std::optional<GraphBreak> changed(bool draws) const;

 private:
  Modes modes_;
  uint64_t seed_;
  at::Tensor generator_;
};

}  // namespace sinter::frontend
