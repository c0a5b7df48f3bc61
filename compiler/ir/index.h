#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/type.h"

namespace sinter::ir {

/// offset + sum(strides[d] * i[d]) over the indices of a loop nest.
struct Affine {
  int64_t offset = 0;
  std::vector<int64_t> strides;
  bool operator==(const Affine&) const = default;
};

/// scale * ((inner / divisor) % modulus), with inner >= 0; modulus 0 means no modulus.
struct QuasiTerm {
  int64_t scale = 1;
  Affine inner;
  int64_t divisor = 1;
  int64_t modulus = 0;
  bool operator==(const QuasiTerm&) const = default;
};

/// Where a loop nest reads or writes in a buffer, in elements: an affine part and, for reshapes that do not follow
/// the dims, quasi-affine terms.
struct Index {
  Affine affine;
  std::vector<QuasiTerm> terms;
  [[nodiscard]] bool is_affine() const { return terms.empty(); }
  bool operator==(const Index&) const = default;
};

/// The storage offset, in elements, of element i of a tensor of this (static) type: its strides.
[[nodiscard]] Index storage_index(const Type& type);

/// Index of each dim of `base` at which element i of the view is found. `base` is the type of a value that a fused
/// region computes and never stores, `view` another look at it, `offset` elements after its first. Nothing when the
/// base is not dense or the map would need nested divisions. Static types only.
[[nodiscard]] std::optional<std::vector<Index>> view_map(const Type& base, const Type& view, int64_t offset);

/// Substitutes dim indices into an index: `outer` addresses by base dims, `dims[d]` gives base dim d in terms of the
/// loop nest `extents`. Simplifies divisions and modulos that the extents make exact. Nothing when the result would
/// need nested divisions.
[[nodiscard]] std::optional<Index> compose(const Index& outer, std::span<const Index> dims,
                                           std::span<const int64_t> extents);

/// Index of a value with sizes `from` broadcast to a loop nest `to` (ATen's rule: right-aligned, size 1 repeats).
[[nodiscard]] std::vector<Index> broadcast_map(std::span<const int64_t> from, std::span<const int64_t> to);

/// True when the index changes with the dim.
[[nodiscard]] bool depends_on(const Index& index, size_t dim);

/// Evaluates an index at a point.
[[nodiscard]] int64_t evaluate(const Index& index, std::span<const int64_t> point);

}  // namespace sinter::ir
