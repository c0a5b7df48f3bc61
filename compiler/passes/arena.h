#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sinter::passes {

inline constexpr int64_t arena_alignment = 512;  ///< bytes; that of LibTorch's CUDA allocator

/// Memory needed from one step to another, both included.
struct Chunk {
  int64_t bytes = 0;
  size_t first = 0;
  size_t last = 0;
  int64_t offset = 0;  ///< set by `place`
};

/// Gives every chunk an offset, a multiple of the alignment, so that chunks needed at the same time do not overlap:
/// the largest first, each into the smallest gap that holds it. Returns the size of the arena.
int64_t place(std::vector<Chunk>& chunks);

}  // namespace sinter::passes
