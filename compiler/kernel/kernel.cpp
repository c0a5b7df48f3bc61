#include "compiler/kernel/kernel.h"

#include <algorithm>

namespace sinter::kernel {
namespace {

bool depends_on(const ir::Index& index, size_t dim) {
  const auto steps = [dim](const ir::Affine& affine) { return affine.strides[dim] != 0; };
  return steps(index.affine) ||
         std::ranges::any_of(index.terms, [&](const ir::QuasiTerm& term) { return steps(term.inner); });
}

/// Elements an access touches, counting repeats of a broadcast once.
int64_t footprint(const ir::Index& index, const std::vector<int64_t>& extents) {
  int64_t count = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (depends_on(index, d)) count *= extents[d];
  }
  return count;
}

}  // namespace

int64_t Kernel::numel() const {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

int64_t Kernel::bytes_moved() const {
  if (numel() == 0) return 0;
  std::vector<int64_t> elements(params.size(), 0);
  const auto touch = [&](uint32_t param, const ir::Index& index) {
    if (params[param].role == Param::Role::host_scalar) return;
    elements[param] = std::max(elements[param], footprint(index, extents));
  };
  for (const auto& instruction : body) {
    if (const auto* load = std::get_if<Load>(&instruction.operation)) touch(load->param, load->index);
  }
  for (const auto& store : stores) touch(store.param, store.index);
  int64_t bytes = 0;
  for (size_t p = 0; p < params.size(); ++p) bytes += elements[p] * ir::bytes_of(params[p].dtype);
  return bytes;
}

}  // namespace sinter::kernel
