#pragma once

#include <ATen/core/Tensor.h>

namespace sinter::frontend {

/// True where `read` sees memory that a write to `written` changes, but not the same elements in the same places: what
/// an operator that writes one while it reads the other computes depends on the order of its loops. Exact for tensors
/// of one element size that span at most 2^28 elements; larger ones count as overlapping where their ranges do.
[[nodiscard]] bool overlaps_in_part(const at::Tensor& written, const at::Tensor& read);

}  // namespace sinter::frontend
