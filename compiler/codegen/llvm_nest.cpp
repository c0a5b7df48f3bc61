#include "compiler/codegen/llvm_nest.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <variant>

namespace sinter::codegen {

namespace {

/// The dims [first, rank) as one: elements of the joined dim are numbered in row-major order.
struct Join {
  size_t first = 0;
  std::vector<int64_t> extents;  ///< of the whole nest, before joining
};

ir::Affine take_outer(const ir::Affine& affine, size_t count) {
  ir::Affine outer{.offset = affine.offset, .strides = {}};
  for (size_t d = 0; d < count; ++d) outer.strides.push_back(stride_of(affine, d));
  return outer;
}

/// Joined dims whose strides follow each other make one digit of a mixed-radix number; every digit but a lone one
/// becomes a quasi-affine term.
ir::Index join_index(const ir::Index& index, const Join& join) {
  ir::Index joined;
  joined.affine = take_outer(index.affine, join.first);
  joined.affine.strides.push_back(0);
  ir::Affine joined_dim{.offset = 0, .strides = std::vector<int64_t>(join.first + 1, 0)};
  joined_dim.strides.back() = 1;

  size_t last = join.extents.size();  // one past the digit's innermost dim
  int64_t divisor = 1;
  while (last > join.first) {
    size_t begin = last - 1;
    int64_t digit = join.extents[begin];
    const int64_t scale = stride_of(index.affine, begin);
    while (begin > join.first && stride_of(index.affine, begin - 1) == scale * digit) digit *= join.extents[--begin];
    const bool leads = begin == join.first;
    if (scale != 0 && leads && divisor == 1) {
      joined.affine.strides.back() = scale;
    } else if (scale != 0) {
      joined.terms.push_back({.scale = scale, .inner = joined_dim, .divisor = divisor, .modulus = leads ? 0 : digit});
    }
    divisor *= digit;
    last = begin;
  }
  return joined;
}

/// Where a load from memory reads, or what a question is about; nullptr for other instructions.
const ir::Index* index_of(const kernel::Kernel& kernel, const kernel::Instruction& instruction) {
  if (const auto* inside = std::get_if<kernel::Inside>(&instruction.operation)) return &inside->index;
  const kernel::Load* load = kernel::memory_load(kernel, instruction);
  return load == nullptr ? nullptr : &load->index;
}

/// The group of dims to join: the innermost dims, from `outermost` on, until `enough` elements, or none (the last dim
/// alone).
Join choose_join(const kernel::Kernel& kernel, size_t outermost, int64_t enough) {
  Join join{.first = kernel.extents.size() - 1, .extents = kernel.extents};
  const auto affine = [](const ir::Index& index) { return index.is_affine(); };
  const bool all_affine = std::ranges::all_of(kernel.stores, affine, &kernel::Store::index) &&
                          std::ranges::all_of(kernel.body, [&](const kernel::Instruction& instruction) {
                            const ir::Index* index = index_of(kernel, instruction);
                            return index == nullptr || affine(*index);
                          });
  if (!all_affine) return join;
  int64_t elements = kernel.extents.back();
  while (join.first > outermost && elements < enough) elements *= kernel.extents[--join.first];
  return join;
}

bool follows(const ir::Affine& affine, size_t first, size_t last) {
  for (size_t d = first; d < last; ++d) {
    if (stride_of(affine, d) != 0) return true;
  }
  return false;
}

Access classify(uint32_t param, ir::Index index, const std::vector<int64_t>& extents) {
  Access access{.param = param, .index = std::move(index)};
  const size_t inner = extents.size() - 1;
  access.varies_by_row = follows(access.index.affine, 0, inner);
  const int64_t stride = extents[inner] == 1 ? 0 : stride_of(access.index.affine, inner);
  access.walk = stride == 0 ? Walk::uniform : stride == 1 ? Walk::contiguous : Walk::strided;
  for (const ir::QuasiTerm& term : access.index.terms) {
    access.varies_by_row = access.varies_by_row || follows(term.inner, 0, inner);
    if (stride_of(term.inner, inner) != 0) access.walk = Walk::scattered;
  }
  return access;
}

/// Neither contiguous along the row nor the same all along it, but contiguous from row to row.
bool runs_across_rows(const Access& access, size_t rank) {
  return access.walk == Walk::strided && stride_of(access.index.affine, rank - 2) == 1;
}

/// The nest over new extents; `change` gives each access's index over them.
template <class Change>
Nest nest_over(const kernel::Kernel& kernel, std::vector<int64_t> extents, Change change) {
  Nest nest{.extents = std::move(extents), .loads = {}, .stores = {}};
  for (const kernel::Instruction& instruction : kernel.body) {
    const ir::Index* index = index_of(kernel, instruction);
    const kernel::Load* load = kernel::memory_load(kernel, instruction);
    const uint32_t param = load == nullptr ? 0 : load->param;
    nest.loads.push_back(index == nullptr ? Access{} : classify(param, change(*index), nest.extents));
  }
  for (const kernel::Store& store : kernel.stores) {
    nest.stores.push_back(classify(store.param, change(store.index), nest.extents));
  }
  return nest;
}

/// The kernel's loops with the innermost ones, from `outermost` on, joined until they fill vectors.
Nest joined_nest(const kernel::Kernel& kernel, size_t outermost, int64_t lanes) {
  const Join join = choose_join(kernel, outermost, 2 * lanes);
  const auto first_joined = kernel.extents.begin() + static_cast<std::ptrdiff_t>(join.first);
  std::vector<int64_t> extents(kernel.extents.begin(), first_joined);
  extents.push_back(std::accumulate(first_joined, kernel.extents.end(), int64_t{1}, std::multiplies<>()));
  const bool joins = join.first + 1 < kernel.extents.size();
  return nest_over(kernel, std::move(extents),
                   [&](const ir::Index& index) { return joins ? join_index(index, join) : index; });
}

}  // namespace

int64_t rows_per_block(const kernel::Kernel& kernel, const Nest& nest) {
  if (nest.rank() < 2) return 1;
  int64_t rows = 1;
  bool affine = true;
  const auto look = [&](const Access& access) {
    affine = affine && access.index.is_affine();
    if (!runs_across_rows(access, nest.rank())) return;
    constexpr int64_t cache_line = 64;
    rows = std::max(rows, std::min<int64_t>(cache_line / ir::bytes_of(kernel.params[access.param].dtype), 32));
  };
  for (const Access& access : nest.loads) look(access);
  for (const Access& access : nest.stores) look(access);
  return affine && nest.extents[nest.rank() - 2] >= rows ? rows : 1;
}

int64_t stride_of(const ir::Affine& affine, size_t dim) {
  return dim < affine.strides.size() ? affine.strides[dim] : 0;
}

int64_t Nest::numel() const {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

Nest make_nest(const kernel::Kernel& source, int64_t lanes) {
  if (!source.extents.empty()) return joined_nest(source, 0, lanes);
  kernel::Kernel point = source;  // a 0-dim kernel is a loop of one point
  point.extents = {1};
  return joined_nest(point, 0, lanes);
}

Nest make_nest_along_rows(const kernel::Kernel& kernel, int64_t lanes) {
  return joined_nest(kernel, kernel.extents.size() - kernel.reduced, lanes);
}

Nest make_nest_across_rows(const kernel::Kernel& kernel) {
  const auto from = static_cast<std::ptrdiff_t>(kernel.extents.size() - kernel.reduced - 1);
  const auto move_last = [from](std::vector<int64_t> numbers) {
    std::rotate(numbers.begin() + from, numbers.begin() + from + 1, numbers.end());
    return numbers;
  };
  const auto moved = [&](ir::Index index) {
    index.affine.strides = move_last(index.affine.strides);
    for (ir::QuasiTerm& term : index.terms) term.inner.strides = move_last(term.inner.strides);
    return index;
  };
  return nest_over(kernel, move_last(kernel.extents), moved);
}

}  // namespace sinter::codegen
