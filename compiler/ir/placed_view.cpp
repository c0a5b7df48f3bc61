#include "compiler/ir/placed_view.h"

#include "compiler/ir/index.h"

namespace sinter::ir {

std::optional<PlacedView> seen_in(const Type& before, const Type& now, const PlacedView& view) {
  if (!view.type.is_static()) return std::nullopt;
  const auto dims = view_map(before, view.type, view.offset);
  if (!dims) return std::nullopt;
  const auto index = compose(storage_index(now), *dims, view.type.static_sizes());
  if (!index || !index->is_affine()) return std::nullopt;
  PlacedView seen{view.type, index->affine.offset};
  seen.type.strides.assign(index->affine.strides.begin(), index->affine.strides.end());
  return seen;
}

}  // namespace sinter::ir
