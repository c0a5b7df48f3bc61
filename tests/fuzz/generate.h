#pragma once

#include <ATen/core/Tensor.h>

#include "program.h"

namespace sinter::test::fuzz {

/// A random program: the same for the same seed on the same device. Instructions are tried as they are added: what
/// LibTorch refuses, and what leaves numbers too large to compare, is left out.
[[nodiscard]] Program generate(uint64_t seed, at::Device device);

}  // namespace sinter::test::fuzz
