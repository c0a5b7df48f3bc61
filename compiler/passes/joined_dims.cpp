#include "compiler/passes/joined_dims.h"

#include <ranges>

namespace sinter::passes {

std::optional<JoinedDims> joined_dims(const ir::Type& type, std::span<const size_t> dims) {
  if (dims.size() == 1) return JoinedDims{type.sizes[dims[0]].constant(), type.strides[dims[0]].constant()};
  JoinedDims all;
  for (const size_t dim : std::views::reverse(dims)) {
    const int64_t size = type.sizes[dim].constant(), stride = type.strides[dim].constant();
    if (size == 1) continue;
    if (all.size > 1 && stride != all.stride * all.size) return std::nullopt;
    if (all.size == 1) all.stride = stride;
    all.size *= size;
  }
  return all;
}

}  // namespace sinter::passes
