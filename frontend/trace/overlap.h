#pragma once

#include <ATen/core/Tensor.h>

#include "frontend/trace/elements.h"

namespace sinter::frontend {

/// True where two tensors in one storage share memory; offsets count from its beginning. Exact for tensors of one
/// element size; others count as overlapping where their ranges do.
[[nodiscard]] bool overlap(const Elements& a, const Elements& b);

/// True where `read` sees memory that a write to `written` changes, but not the same elements in the same places: what
/// an operator that writes one while it reads the other computes depends on the order of its loops. As exact.
[[nodiscard]] bool overlaps_in_part(const at::Tensor& written, const at::Tensor& read);

}  // namespace sinter::frontend
