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

struct Reduction {
  const ir::Node& node;
  const Type& operand;
  const std::vector<uint32_t>& dims;
};

std::vector<Reduction> reductions_of(const Region& region) {
  std::vector<Reduction> all;
  for (const ir::NodeId id : region.members) {
    const ir::Node& node = region.graph.node(id);
    const auto* reduce = node.as<ir::Reduce>();
    if (reduce != nullptr) all.push_back({node, region.graph.type(*node.args[0].value()), reduce->dims});
  }
  return all;
}

/// The sizes longer than 1 from a dim on.
std::vector<int64_t> longer_sizes(const Type& type, size_t from) {
  std::vector<int64_t> sizes;
  for (size_t d = from; d < type.rank(); ++d) {
    if (!(type.sizes[d] == ir::Dim(1))) sizes.push_back(type.sizes[d].constant());
  }
  return sizes;
}

/// True where `sums` joins rows that `rows` reduces: it goes over one dim, and all dims after that make up such a row.
bool joins_rows_of(const Reduction& sums, const Reduction& rows) {
  if (sums.dims.size() != 1 || !sums.operand.is_contiguous() || sums.operand.numel() != rows.operand.numel()) {
    return false;
  }
  const size_t first = rows.operand.rank() - rows.dims.size();
  const bool last_dims = !rows.dims.empty() && first > 0 && rows.dims.front() == first;
  const std::vector<int64_t> row = longer_sizes(sums.operand, sums.dims[0] + 1);
  const bool has_groups = !row.empty() && !(sums.operand.sizes[sums.dims[0]] == ir::Dim(1));
  return last_dims && has_groups && row == longer_sizes(rows.operand, first);
}

/// One of each kind: the first of those with equal dims of equal operands.
std::vector<const Reduction*> kinds_of(const std::vector<Reduction>& reductions) {
  std::vector<const Reduction*> kinds;
  for (const Reduction& reduction : reductions) {
    const auto is_alike = [&](const Reduction* kind) {
      return kind->dims == reduction.dims && kind->operand.sizes == reduction.operand.sizes &&
             kind->operand.strides == reduction.operand.strides;
    };
    if (std::ranges::none_of(kinds, is_alike)) kinds.push_back(&reduction);
  }
  return kinds;
}

/// A reduction of groups of the rows that the region reduces.
const Reduction* find_groups(const std::vector<Reduction>& reductions) {
  const std::vector<const Reduction*> kinds = kinds_of(reductions);
  for (const Reduction* sums : kinds) {
    for (const Reduction* rows : kinds) {
      if (joins_rows_of(*sums, *rows)) return sums;
    }
  }
  return nullptr;
}

/// The type with dims from `first` on of size 1.
Type without_dims(Type type, size_t first) {
  for (size_t d = first; d < type.rank(); ++d) type.sizes[d] = 1;
  return ir::contiguous(type.dtype, type.sizes, type.device);
}

}  // namespace

Nest Nest::of(const Region& region) {
  const std::vector<Reduction> reductions = reductions_of(region);
  if (const Reduction* groups = find_groups(reductions)) {
    std::vector<uint32_t> row_dims;
    for (uint32_t d = groups->dims[0] + 1; d < groups->operand.rank(); ++d) row_dims.push_back(d);
    const Type kept = without_dims(groups->operand, row_dims.front());
    Nest nest(groups->operand, row_dims, kept, groups->operand.static_strides());
    nest.in_groups_ = true;
    return nest;
  }
  if (!reductions.empty()) {
    const Reduction& first = reductions.front();
    const Type& kept = region.graph.type(first.node.results[0]);
    return {first.operand, first.dims, kept, strides_of_rows(region, first.operand, kept)};
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

bool Nest::joins_groups(const Type& operand, const std::vector<uint32_t>& dims) const {
  if (!in_groups_ || dims.size() != 1 || operand.sizes != space_.sizes) return false;
  const auto& loop = loop_of_[dims[0]];
  return loop && *loop + reduced() + 1 == extents_.size();
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
