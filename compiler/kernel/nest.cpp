#include "compiler/kernel/nest.h"

#include <algorithm>
#include <utility>

namespace sinter::kernel {
namespace {

using ir::Index;
using ir::Type;

int64_t product(std::span<const int64_t> numbers) {
  int64_t count = 1;
  for (const int64_t number : numbers) count *= number;
  return count;
}

/// Dims by falling stride; the order of the dims breaks ties.
void sort_by_stride(std::vector<size_t>& dims, const std::vector<int64_t>& strides) {
  std::ranges::stable_sort(dims, [&](size_t a, size_t b) { return strides[a] > strides[b]; });
}

bool steps_along(const ir::Affine& affine, size_t first_loop) {
  for (size_t loop = first_loop; loop < affine.strides.size(); ++loop) {
    if (affine.strides[loop] != 0) return true;
  }
  return false;
}

bool steps_along(const Index& index, size_t first_loop) {
  return steps_along(index.affine, first_loop) ||
         std::ranges::any_of(index.terms, [&](const auto& term) { return steps_along(term.inner, first_loop); });
}

std::vector<size_t> longer_dims(const Type& type) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < type.rank(); ++d) {
    if (!(type.sizes[d] == ir::Dim(1))) dims.push_back(d);
  }
  return dims;
}

/// The dims longer than 1 of both types, side by side. Nothing where their sizes differ.
std::optional<std::vector<std::pair<size_t, size_t>>> same_longer_dims(const Type& type, const Type& like) {
  const std::vector<size_t> ours = longer_dims(type);
  const std::vector<size_t> theirs = longer_dims(like);
  if (ours.size() != theirs.size()) return std::nullopt;
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (type.sizes[ours[i]] != like.sizes[theirs[i]]) return std::nullopt;
    pairs.emplace_back(ours[i], theirs[i]);
  }
  return pairs;
}

/// The map of a type whose dims longer than 1 are those of `like`, for which `dims` is one. Nothing for other types.
std::optional<Map> along_longer_dims(const Type& type, const Type& like, const Map& dims, const Index& zero) {
  const auto pairs = same_longer_dims(type, like);
  if (!pairs) return std::nullopt;
  Map map(type.rank(), zero);
  for (const auto& [dim, of_like] : *pairs) map[dim] = dims[of_like];
  return map;
}

/// The strides of a type by dim of another one, if their dims longer than 1 are the same.
std::optional<std::vector<int64_t>> strides_along(const Type& type, const Type& like) {
  const auto pairs = same_longer_dims(type, like);
  if (!pairs) return std::nullopt;
  std::vector<int64_t> strides(like.rank(), 0);
  for (const auto& [dim, of_like] : *pairs) strides[of_like] = type.strides[dim].value();
  return strides;
}

/// Those by which rows follow each other: of the first output with an element for each, else of the space. What is
/// computed in between has strides as it was captured, and lies nowhere.
std::vector<int64_t> strides_of_rows(const Region& region, const Type& space, const Type& kept) {
  for (const ir::ValueId output : region.outputs) {
    if (auto strides = strides_along(region.graph.type(output), kept)) return *std::move(strides);
  }
  return space.static_strides();
}

}  // namespace

Nest Nest::of(const Region& region) {
  for (const ir::NodeId id : region.members) {
    const ir::Node& node = region.graph.node(id);
    if (const auto* reduce = node.as<ir::Reduce>()) {
      const Type& space = region.graph.type(*node.args[0].value());
      const Type& kept = region.graph.type(node.results[0]);
      return {space, reduce->dims, kept, strides_of_rows(region, space, kept)};
    }
  }
  const Type& space = region.graph.type(region.outputs.front());
  return {space, {}, space, space.static_strides()};
}

Nest::Nest(const Type& space, const std::vector<uint32_t>& reduced, const Type& kept,
           const std::vector<int64_t>& outer_strides)
    : space_(space), kept_(kept), loop_of_(space.rank()) {
  const auto sizes = space.static_sizes();
  const auto strides = space.static_strides();
  std::vector<size_t> outer;
  std::vector<size_t> inner;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool in_row = std::ranges::find(reduced, static_cast<uint32_t>(d)) != reduced.end();
    if (sizes[d] != 1) (in_row ? inner : outer).push_back(d);
  }
  std::vector<size_t> order = outer;
  sort_by_stride(order, outer_strides);
  std::vector<size_t> by_stride = inner;
  sort_by_stride(by_stride, strides);
  order.insert(order.end(), by_stride.begin(), by_stride.end());
  for (const size_t dim : order) {
    loop_of_[dim] = extents_.size();
    extents_.push_back(sizes[dim]);
  }
  for (const size_t dim : inner) row_loops_.push_back(*loop_of_[dim]);
}

int64_t Nest::numel() const { return product(extents_); }
int64_t Nest::rows() const { return product(std::span(extents_).first(extents_.size() - reduced())); }

Index Nest::zero() const {
  return {.affine = {.offset = 0, .strides = std::vector<int64_t>(extents_.size(), 0)}, .terms = {}};
}

Index Nest::loop(size_t number) const {
  Index index = zero();
  index.affine.strides[number] = 1;
  return index;
}

std::optional<Map> Nest::points(const Type& output) const {
  const int64_t elements = output.numel();
  if (elements == numel()) return points_like(output, space_);
  if (elements == rows()) return points_like(output, kept_);
  return std::nullopt;
}

std::optional<Map> Nest::points_like(const Type& output, const Type& like) const {
  Map dims;
  for (size_t d = 0; d < like.rank(); ++d) {
    dims.push_back(loop_of_[d] && !(like.sizes[d] == ir::Dim(1)) ? loop(*loop_of_[d]) : zero());
  }
  if (output.sizes == like.sizes) return dims;
  if (dims.empty()) return Map(output.rank(), zero());
  if (auto by_dims = along_longer_dims(output, like, dims, zero())) return by_dims;
  Type look = like;
  if (!look.is_dense()) look.strides = ir::contiguous_strides(look.sizes);
  const auto through = ir::view_map(output, look, 0);
  if (!through) return std::nullopt;
  return substitute(*through, dims);
}

std::optional<Map> Nest::row_of(const Type& operand, const std::vector<uint32_t>& dims, const Map& at) const {
  const size_t first = extents_.size() - reduced();
  if (std::ranges::any_of(at, [&](const Index& index) { return steps_along(index, first); })) return std::nullopt;
  Map map = at;
  size_t next = 0;
  int64_t points = 1;
  for (const uint32_t dim : dims) {
    const int64_t size = operand.sizes[dim].constant();
    points *= size;
    if (size == 1) continue;
    if (next == row_loops_.size() || extents_[row_loops_[next]] != size) return std::nullopt;
    map[dim] = loop(row_loops_[next++]);
  }
  const bool whole_row = next == row_loops_.size() && operand.numel() == rows() * points;
  return whole_row ? std::optional(std::move(map)) : std::nullopt;
}

std::optional<Index> Nest::substitute(const Index& outer, const Map& dims) const {
  auto index = ir::compose(outer, dims, extents_);
  if (!index) return std::nullopt;
  index->affine.strides.resize(extents_.size(), 0);
  for (auto& term : index->terms) term.inner.strides.resize(extents_.size(), 0);
  return index;
}

std::optional<Map> Nest::substitute(const std::vector<Index>& outer, const Map& dims) const {
  Map result;
  for (const Index& index : outer) {
    auto substituted = substitute(index, dims);
    if (!substituted) return std::nullopt;
    result.push_back(*std::move(substituted));
  }
  return result;
}

}  // namespace sinter::kernel
