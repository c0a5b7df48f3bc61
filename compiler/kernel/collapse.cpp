#include "compiler/kernel/collapse.h"

#include <algorithm>

#include "compiler/kernel/indices.h"

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

/// True where the answer is the same all along the inner dim and changes in steps of the outer one: then the index and
/// its bounds may be multiplied by the inner extent, and the inner dim added.
bool stretches(const Inside& inside, size_t outer) {
  const auto& strides = inside.index.affine.strides;
  return inside.index.is_affine() && strides[outer] == 1 && strides[outer + 1] == 0;
}

void stretch(Inside& inside, size_t outer, int64_t inner_extent) {
  for (int64_t* number : {&inside.begin, &inside.end, &inside.index.affine.offset}) *number *= inner_extent;
  for (int64_t& stride : inside.index.affine.strides) stride *= inner_extent;
  inside.index.affine.strides[outer + 1] = 1;
}

void drop(ir::Affine& affine, size_t dim) {
  affine.strides.erase(affine.strides.begin() + static_cast<ptrdiff_t>(dim));
}

void drop(ir::Index& index, size_t dim) {
  drop(index.affine, dim);
  for (auto& term : index.terms) drop(term.inner, dim);
}

struct Merges {
  size_t outer;
  int64_t inner_extent;
  bool all = true;
  void operator()(const ir::Index& index) { all = all && merges(index, outer, inner_extent); }
  void operator()(const Inside& inside) {
    all = all && (merges(inside.index, outer, inner_extent) || stretches(inside, outer));
  }
};

struct Merge {
  size_t outer;
  int64_t inner_extent;
  void operator()(ir::Index& index) { drop(index, outer); }
  void operator()(Inside& inside) {
    if (!merges(inside.index, outer, inner_extent)) stretch(inside, outer, inner_extent);
    drop(inside.index, outer);
  }
};

}  // namespace

void collapse(Kernel& kernel) {
  for (size_t outer = kernel.extents.size(); outer-- > 0;) {
    if (outer + 1 >= kernel.extents.size()) continue;
    const bool between_rows = outer + 1 + kernel.reduced == kernel.extents.size();
    if (between_rows && kernel.reduced > 0) continue;
    const int64_t inner_extent = kernel.extents[outer + 1];
    Merges merges_all{outer, inner_extent};
    for_each_index(kernel, merges_all);
    if (!merges_all.all) continue;
    for_each_index(kernel, Merge{outer, inner_extent});
    kernel.extents[outer + 1] *= kernel.extents[outer];
    if (outer + kernel.reduced >= kernel.extents.size()) --kernel.reduced;
    kernel.extents.erase(kernel.extents.begin() + static_cast<ptrdiff_t>(outer));
  }
}

}  // namespace sinter::kernel
