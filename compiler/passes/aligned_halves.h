#pragma once

#include <cstdint>

namespace sinter::passes {

/// Halves in 16 bytes, which tensor cores load at once. cuBLAS and cuDNN have their fast kernels for rows and channels
/// of multiples of them.
inline constexpr int64_t aligned_halves = 8;

/// Halves that a size lacks to the next multiple.
[[nodiscard]] constexpr int64_t missing_halves(int64_t size) {
  return (aligned_halves - size % aligned_halves) % aligned_halves;
}

}  // namespace sinter::passes
