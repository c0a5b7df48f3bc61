#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "compiler/ir/type.h"

namespace sinter::passes {

struct JoinedDims {
  int64_t size = 1, stride = 0;
};

/// Dims of a static type, outermost first, as one; nothing where elements one apart in it are not all as far from each
/// other.
[[nodiscard]] std::optional<JoinedDims> joined_dims(const ir::Type& type, std::span<const size_t> dims);

}  // namespace sinter::passes
