#include "compiler/kernel/collapse.h"

#include <algorithm>

namespace sinter::kernel {
namespace {

/// True when stepping dim `outer` once equals stepping the dim inside it through its whole extent.
bool merges(const ir::Affine& affine, size_t outer, int64_t inner_extent) {
  return affine.strides[outer] == affine.strides[outer + 1] * inner_extent;
}

bool merges(const ir::Index& index, size_t outer, int64_t inner_extent) {
  return merges(index.affine, outer, inner_extent) && std::ranges::all_of(index.terms, [&](const ir::QuasiTerm& term) {
           return merges(term.inner, outer, inner_extent);
         });
}

void drop(ir::Affine& affine, size_t dim) {
  affine.strides.erase(affine.strides.begin() + static_cast<ptrdiff_t>(dim));
}

void drop(ir::Index& index, size_t dim) {
  drop(index.affine, dim);
  for (auto& term : index.terms) drop(term.inner, dim);
}

/// Calls `visit` with the index of every access to memory.
template <class Visit>
void for_each_index(Kernel& kernel, Visit&& visit) {
  for (auto& instruction : kernel.body) {
    auto* load = std::get_if<Load>(&instruction.operation);
    if (load != nullptr && kernel.params[load->param].role != Param::Role::host_scalar) visit(load->index);
  }
  for (auto& store : kernel.stores) visit(store.index);
}

}  // namespace

void collapse(Kernel& kernel) {
  for (size_t outer = kernel.extents.size(); outer-- > 0;) {
    if (outer + 1 >= kernel.extents.size()) continue;
    const bool between_rows = outer + 1 + kernel.reduced == kernel.extents.size();
    if (between_rows && kernel.reduced > 0) continue;
    const int64_t inner_extent = kernel.extents[outer + 1];
    bool all = true;
    for_each_index(kernel, [&](const ir::Index& index) { all = all && merges(index, outer, inner_extent); });
    if (!all) continue;
    for_each_index(kernel, [&](ir::Index& index) { drop(index, outer); });
    kernel.extents[outer + 1] *= kernel.extents[outer];
    if (outer + kernel.reduced >= kernel.extents.size()) --kernel.reduced;
    kernel.extents.erase(kernel.extents.begin() + static_cast<ptrdiff_t>(outer));
  }
}

}  // namespace sinter::kernel
