#pragma once

#include <cstdint>
#include <vector>

#include "compiler/passes/rewriter.h"

namespace sinter::passes {

/// The values side by side along a dim, laid out like the first one.
[[nodiscard]] ir::ValueId side_by_side(Rewriter& rewrite, std::vector<ir::Arg> parts, uint32_t dim, ir::ScopeId scope);

/// The value with `before` and `after` further elements along a dim, which are zeros.
[[nodiscard]] ir::ValueId among_zeros(Rewriter& rewrite, ir::ValueId value, uint32_t dim, int64_t before, int64_t after,
                                      ir::ScopeId scope);

}  // namespace sinter::passes
