#include "frontend/trace/overlap.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "frontend/torch/tensor_memory.h"
#include "frontend/trace/elements.h"

namespace sinter::frontend {
namespace {

constexpr int64_t kLargestSpan = int64_t{1} << 28;

/// Calls `visit` with the place of every element in the storage, until it says true; true when it did.
bool any_element(const Elements& elements, size_t dim, int64_t place, const std::function<bool(int64_t)>& visit) {
  if (dim == elements.sizes.size()) return visit(place);
  for (int64_t i = 0; i < elements.sizes[dim]; ++i) {
    if (any_element(elements, dim + 1, place + i * elements.strides[dim], visit)) return true;
  }
  return false;
}

}  // namespace

bool overlaps_in_part(const at::Tensor& written, const at::Tensor& read) {
  if (storage_of(*written.unsafeGetTensorImpl()) != storage_of(*read.unsafeGetTensorImpl())) return false;
  const Elements a = Elements::of(written);
  const Elements b = Elements::of(read);
  if (a == b) return false;
  if (a.end_byte() <= b.begin_byte() || b.end_byte() <= a.begin_byte()) return false;
  const auto bytes = static_cast<int64_t>(written.itemsize());
  const int64_t span = (a.end_byte() - a.begin_byte()) / bytes;
  if (bytes != static_cast<int64_t>(read.itemsize()) || span > kLargestSpan) return true;
  std::vector<bool> taken(static_cast<size_t>(span));
  any_element(a, 0, 0, [&](int64_t place) {
    taken[static_cast<size_t>(place)] = true;
    return false;
  });
  return any_element(b, 0, b.offset - a.offset,
                     [&](int64_t place) { return place >= 0 && place < span && taken[static_cast<size_t>(place)]; });
}

}  // namespace sinter::frontend
