#pragma once

#include <cstdint>
#include <optional>

#include "compiler/ir/type.h"

namespace sinter::ir {

/// A view, as a View node and its result's type say it.
struct PlacedView {
  Type type;
  int64_t offset = 0;  ///< elements after the first of the value that it is a view of
};

/// The elements that `view` sees in a value of type `before`, where that value now has type `now`, of the same sizes.
/// Nothing where no strides reach them. Static types only.
[[nodiscard]] std::optional<PlacedView> seen_in(const Type& before, const Type& now, const PlacedView& view);

}  // namespace sinter::ir
