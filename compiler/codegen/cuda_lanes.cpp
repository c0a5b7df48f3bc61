#include "compiler/codegen/cuda_lanes.h"

#include <algorithm>
#include <numeric>

namespace sinter::codegen {
namespace {

int64_t inner_stride(const ir::Affine& affine) { return affine.strides.empty() ? 0 : affine.strides.back(); }

/// A number that divides the affine's value at the first lane of every vector.
int64_t divisor_at_vectors(const ir::Affine& affine, std::span<const int64_t> extents, int64_t width) {
  int64_t divisor = std::abs(affine.offset);
  for (size_t d = 0; d < affine.strides.size(); ++d) {
    const int64_t step = d + 1 == affine.strides.size() ? width : 1;
    if (extents[d] > step) divisor = std::gcd(divisor, affine.strides[d] * step);
  }
  return divisor;
}

bool divides(int64_t divisor, int64_t number) { return number % divisor == 0; }

/// Lanes of scale * ((inner / divisor) % modulus).
std::optional<Lanes> lanes_of_term(const ir::QuasiTerm& term, std::span<const int64_t> extents, int64_t width) {
  const int64_t step = inner_stride(term.inner);
  const int64_t first = divisor_at_vectors(term.inner, extents, width);
  const int64_t span = step * width;
  if (step == 0) return Lanes{.stride = 0, .alignment = term.scale};
  if (step < 0) return std::nullopt;
  const bool aligned = divides(span, first);
  if (aligned && divides(span, term.divisor)) return Lanes{.stride = 0, .alignment = term.scale};
  if (!divides(term.divisor, step) || !divides(term.divisor, first)) return std::nullopt;
  const int64_t quotient_step = step / term.divisor;
  const bool wraps_between_vectors = aligned && term.modulus % (quotient_step * width) == 0;
  if (term.modulus != 0 && !wraps_between_vectors) return std::nullopt;
  const int64_t quotient = std::gcd(first / term.divisor, term.modulus);
  return Lanes{.stride = term.scale * quotient_step, .alignment = term.scale * quotient};
}

int64_t largest_affine(const ir::Affine& affine, std::span<const int64_t> extents) {
  int64_t bound = std::max<int64_t>(affine.offset, 0);
  for (size_t d = 0; d < affine.strides.size(); ++d) {
    bound += std::max<int64_t>(affine.strides[d], 0) * (extents[d] - 1);
  }
  return bound;
}

}  // namespace

std::optional<Lanes> lanes_of(const ir::Index& index, std::span<const int64_t> extents, int64_t width) {
  Lanes lanes{.stride = inner_stride(index.affine), .alignment = divisor_at_vectors(index.affine, extents, width)};
  for (const auto& term : index.terms) {
    const auto part = lanes_of_term(term, extents, width);
    if (!part) return std::nullopt;
    lanes.stride += part->stride;
    lanes.alignment = std::gcd(lanes.alignment, part->alignment);
  }
  return lanes;
}

bool is_linear(const ir::Index& index, std::span<const int64_t> extents) {
  if (!index.is_affine()) return false;
  int64_t stride = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    if (index.affine.strides[d] != stride) return false;
    stride *= extents[d];
  }
  return true;
}

int64_t largest(const ir::Index& index, std::span<const int64_t> extents) {
  int64_t total = largest_affine(index.affine, extents);
  int64_t operand = 0;
  for (const auto& term : index.terms) {
    const int64_t inner = largest_affine(term.inner, extents);
    operand = std::max(operand, inner);
    const int64_t quotient = inner / term.divisor;
    const int64_t value = term.modulus == 0 ? quotient : std::min(quotient, term.modulus - 1);
    total += std::max<int64_t>(term.scale, 0) * value;
  }
  return std::max(total, operand);
}

}  // namespace sinter::codegen
