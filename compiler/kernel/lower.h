#pragma once

#include <optional>
#include <string>

#include "compiler/kernel/kernel.h"
#include "compiler/kernel/region.h"

namespace sinter::kernel {

/// The loop form of a region, without a name. Nothing where one nest cannot compute it: outputs of other sizes, a
/// reduction over other loops (but one of groups of rows, kernel/nest.h) or one whose result changes along them, an
/// index that needs nested divisions, or more than `most_values` values to compute (one that is wanted at several
/// points counts for each). Static types.
[[nodiscard]] std::optional<Kernel> try_lower(const Region& region, size_t most_values);

/// The loop form of a fused node's body. Params are its inputs, in order, then its outputs. Throws InternalError where
/// there is none: fuse must not have made such a body.
[[nodiscard]] Kernel lower(const ir::Graph& body, const std::string& name);

}  // namespace sinter::kernel
