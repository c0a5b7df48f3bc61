#include "compiler/ir/index.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/index_simplify.h"
#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

using Extents = std::span<const int64_t>;

/// Largest value of (inner / divisor) % modulus.
int64_t largest_value(const QuasiTerm& term, Extents extents) {
  const int64_t quotient = largest(term.inner, extents) / term.divisor;
  return term.modulus == 0 ? quotient : std::min(quotient, term.modulus - 1);
}

/// scale * a + b; nothing when it overflows.
std::optional<Affine> scaled_sum(const Affine& a, int64_t scale, const Affine& b) {
  Affine sum = b;
  bool overflow = false;
  const auto add = [&](int64_t& into, int64_t value) {
    int64_t part = 0;
    overflow |= __builtin_mul_overflow(value, scale, &part) || __builtin_add_overflow(into, part, &into);
  };
  sum.strides.resize(std::max(a.strides.size(), b.strides.size()), 0);
  add(sum.offset, a.offset);
  for (size_t d = 0; d < a.strides.size(); ++d) add(sum.strides[d], a.strides[d]);
  if (overflow) return std::nullopt;
  return sum;
}

/// Divides an index that holds divisions itself. Its terms act as further variables, each with a range of its own;
/// what then still divides such a variable is flattened where a rule allows it.
class NestedDivision {
 public:
  NestedDivision(const Index& numerator, Extents extents)
      : terms_(numerator.terms), extents_(extents), ranges_(extents.begin(), extents.end()), flat_(numerator.affine) {
    flat_.strides.resize(extents.size(), 0);
    for (const QuasiTerm& term : terms_) {
      flat_.strides.push_back(term.scale);
      ranges_.push_back(largest_value(term, extents) + 1);
    }
  }

  std::optional<Index> divide_by(int64_t divisor, int64_t modulus) const {
    const Index extended = divide(flat_, divisor, modulus, ranges_);
    Index result = zero_index(extents_.size());
    add_scaled(result, {loops_of(extended.affine), {}}, 1);
    for (size_t k = 0; k < terms_.size(); ++k) {
      QuasiTerm term = terms_[k];
      term.scale = extended.affine.strides[extents_.size() + k];
      if (term.scale != 0) result.terms.push_back(std::move(term));
    }
    for (const QuasiTerm& term : extended.terms) {
      const auto flattened = flatten(term);
      if (!flattened) return std::nullopt;
      add_scaled(result, *flattened, term.scale);
    }
    return result;
  }

 private:
  /// The part of an extended expression that loops over the nest itself.
  [[nodiscard]] Affine loops_of(const Affine& extended) const {
    const auto rank = static_cast<std::ptrdiff_t>(extents_.size());
    return {extended.offset, {extended.strides.begin(), extended.strides.begin() + rank}};
  }

  /// ((loops + (X / d) % m) / divisor) % modulus without the inner division, scale left out.
  [[nodiscard]] std::optional<Index> flatten(const QuasiTerm& term) const {
    const Affine loops = loops_of(term.inner);
    std::optional<size_t> used;
    for (size_t k = 0; k < terms_.size(); ++k) {
      const int64_t factor = term.inner.strides[extents_.size() + k];
      if (factor == 0) continue;
      if (used || factor != 1) return std::nullopt;
      used = k;
    }
    if (!used) return divide(loops, term.divisor, term.modulus, extents_);
    const QuasiTerm& inner = terms_[*used];
    const bool wraps_whole_turns = term.modulus != 0 && inner.modulus % (term.divisor * term.modulus) == 0;
    if (inner.modulus == 0 || wraps_whole_turns) return join(loops, inner, term.divisor, term.modulus);
    const bool alone = loops == Affine{0, std::vector<int64_t>(extents_.size(), 0)};
    if (!alone || inner.modulus % term.divisor != 0) return std::nullopt;
    const int64_t modulus = inner.modulus / term.divisor;
    if (term.modulus != 0 && modulus > term.modulus) return std::nullopt;
    return join(loops, inner, term.divisor, modulus);
  }

  /// ((loops + X / d) / divisor) % modulus is ((d * loops + X) / (d * divisor)) % modulus.
  [[nodiscard]] std::optional<Index> join(const Affine& loops, const QuasiTerm& inner, int64_t divisor,
                                          int64_t modulus) const {
    const auto numerator = scaled_sum(loops, inner.divisor, inner.inner);
    int64_t product = 0;
    int64_t turn = 0;
    if (!numerator || __builtin_mul_overflow(divisor, inner.divisor, &product)) return std::nullopt;
    if (__builtin_mul_overflow(product, std::max<int64_t>(modulus, 1), &turn)) return std::nullopt;
    return divide(*numerator, product, modulus, extents_);
  }

  const std::vector<QuasiTerm>& terms_;
  Extents extents_;
  std::vector<int64_t> ranges_;
  Affine flat_;
};

/// An affine expression of dims, with their indices in its place.
Index substitute(const Affine& outer, std::span<const Index> dims, Extents extents) {
  Index sum = zero_index(extents.size());
  sum.affine.offset = outer.offset;
  if (outer.strides.size() > dims.size()) throw InternalError("index", "an index has more dims than its substitution");
  for (size_t d = 0; d < outer.strides.size(); ++d) add_scaled(sum, dims[d], outer.strides[d]);
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] <= 1) sum.affine.strides[d] = 0;
  }
  return recombine(std::move(sum), extents);
}

}  // namespace

Index storage_index(const Type& type) { return {{0, type.static_strides()}, {}}; }

std::optional<std::vector<Index>> view_map(const Type& base, const Type& view, int64_t offset) {
  if (!base.is_dense() || offset < 0) return std::nullopt;
  const std::vector<int64_t> extents = view.static_sizes();
  const std::vector<int64_t> sizes = base.static_sizes();
  const std::vector<int64_t> strides = base.static_strides();
  std::vector<Index> map(base.rank(), zero_index(extents.size()));
  if (view.numel() == 0) return map;
  if (offset + view.span() > base.span()) return std::nullopt;
  const Affine address{offset, view.static_strides()};
  const int64_t elements = base.numel();
  for (size_t d = 0; d < base.rank(); ++d) {
    if (sizes[d] == 1) continue;
    const bool outermost = sizes[d] * strides[d] == elements;
    map[d] = recombine(divide(address, strides[d], outermost ? 0 : sizes[d], extents), extents);
  }
  return map;
}

std::optional<Index> compose(const Index& outer, std::span<const Index> dims, std::span<const int64_t> extents) {
  Index result = substitute(outer.affine, dims, extents);
  for (const QuasiTerm& term : outer.terms) {
    const Index numerator = substitute(term.inner, dims, extents);
    const auto quotient = NestedDivision(numerator, extents).divide_by(term.divisor, term.modulus);
    if (!quotient) return std::nullopt;
    add_scaled(result, *quotient, term.scale);
  }
  return recombine(std::move(result), extents);
}

std::vector<Index> broadcast_map(std::span<const int64_t> from, std::span<const int64_t> to) {
  if (from.size() > to.size()) throw InternalError("index", "a shape does not broadcast to one of fewer dims");
  std::vector<Index> map(from.size(), zero_index(to.size()));
  const size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1) map[d].affine.strides[lead + d] = 1;
  }
  return map;
}

bool depends_on(const Index& index, size_t dim) {
  const auto steps = [dim](const Affine& affine) { return affine.strides[dim] != 0; };
  return steps(index.affine) ||
         std::ranges::any_of(index.terms, [&](const QuasiTerm& term) { return steps(term.inner); });
}

int64_t evaluate(const Index& index, std::span<const int64_t> point) {
  const auto affine = [&](const Affine& a) {
    int64_t sum = a.offset;
    for (size_t d = 0; d < a.strides.size(); ++d) sum += a.strides[d] * point[d];
    return sum;
  };
  int64_t sum = affine(index.affine);
  for (const QuasiTerm& term : index.terms) {
    const int64_t quotient = affine(term.inner) / term.divisor;
    sum += term.scale * (term.modulus == 0 ? quotient : quotient % term.modulus);
  }
  return sum;
}

}  // namespace sinter::ir
