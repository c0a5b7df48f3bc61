#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "compiler/ir/index.h"

namespace sinter::codegen {

/// How the elements that the lanes of one vector touch lie in memory. A vector is `width` neighbouring points of the
/// innermost loop, beginning at a multiple of `width`.
struct Lanes {
  int64_t stride = 0;     ///< elements between two lanes
  int64_t alignment = 1;  ///< every vector's first element is a multiple of this many elements (0: always the first)
};

/// Nothing when the step between lanes is not the same everywhere.
[[nodiscard]] std::optional<Lanes> lanes_of(const ir::Index& index, std::span<const int64_t> extents, int64_t width);

/// True when the access touches element `offset + p` at the p-th point of the nest.
[[nodiscard]] bool is_linear(const ir::Index& index, std::span<const int64_t> extents);

/// The largest value of the index, and of every division's operand in it, over the nest; at least 0.
[[nodiscard]] int64_t largest(const ir::Index& index, std::span<const int64_t> extents);

}  // namespace sinter::codegen
