#include "compiler/ir/index_simplify.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace sinter::ir {
namespace {

using Extents = std::span<const int64_t>;

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t floor_mod(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

/// The expression by `unit`: quotients and remainders of its offset and strides.
struct Parts {
  int64_t unit = 1;
  Affine large;  ///< to be multiplied by unit
  Affine small;
};

/// expression = unit * large + small, stride by stride.
Parts quotient_and_remainder(const Affine& affine, int64_t unit) {
  Parts parts{unit, {floor_div(affine.offset, unit), {}}, {floor_mod(affine.offset, unit), {}}};
  for (int64_t stride : affine.strides) {
    parts.large.strides.push_back(floor_div(stride, unit));
    parts.small.strides.push_back(floor_mod(stride, unit));
  }
  return parts;
}

/// Finds a unit above 1 that divides `multiple` and is a multiple of `factor`, such that
/// expression = unit * large + small with 0 <= small < unit at every point.
std::optional<Parts> split(const Affine& affine, int64_t multiple, int64_t factor, Extents extents) {
  std::vector<int64_t> thresholds(affine.strides);
  std::sort(thresholds.begin(), thresholds.end());
  thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
  for (int64_t threshold : thresholds) {
    if (threshold == 0) continue;
    int64_t unit = multiple;
    for (int64_t stride : affine.strides) {
      if (stride >= threshold) unit = std::gcd(unit, stride);
    }
    if (unit <= 1 || unit % factor != 0) continue;
    Parts parts = quotient_and_remainder(affine, unit);
    // Strides below the threshold stay whole on the small side.
    for (size_t d = 0; d < affine.strides.size(); ++d) {
      if (affine.strides[d] >= threshold) continue;
      parts.large.strides[d] = 0;
      parts.small.strides[d] = affine.strides[d];
    }
    if (largest(parts.small, extents) < unit) return parts;
  }
  return std::nullopt;
}

/// How terms are ordered, so that equal sums compare equal.
auto key(const QuasiTerm& term) {
  return std::tie(term.inner.strides, term.inner.offset, term.divisor, term.modulus, term.scale);
}

bool same_division(const QuasiTerm& a, const QuasiTerm& b) {
  return a.inner == b.inner && a.divisor == b.divisor && a.modulus == b.modulus;
}

/// `high` counts the units that `low` wraps around: both together are one term with a coarser modulus, or none.
std::optional<QuasiTerm> joined(const QuasiTerm& high, const QuasiTerm& low) {
  if (low.modulus == 0 || high.inner != low.inner) return std::nullopt;
  int64_t divisor = 0;
  int64_t scale = 0;
  if (__builtin_mul_overflow(low.divisor, low.modulus, &divisor) || high.divisor != divisor) return std::nullopt;
  if (__builtin_mul_overflow(low.scale, low.modulus, &scale) || high.scale != scale) return std::nullopt;
  return QuasiTerm{low.scale, low.inner, low.divisor, high.modulus * low.modulus};
}

/// Replaces one pair of terms by their sum where they have a simpler one.
bool join_pair(Index& index, Extents extents) {
  for (size_t a = 0; a < index.terms.size(); ++a) {
    for (size_t b = 0; b < index.terms.size(); ++b) {
      if (a == b) continue;
      std::optional<QuasiTerm> sum = joined(index.terms[a], index.terms[b]);
      if (!sum && same_division(index.terms[a], index.terms[b])) {
        sum = index.terms[a];
        sum->scale += index.terms[b].scale;
      }
      if (!sum) continue;
      index.terms.erase(index.terms.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)));
      index.terms.erase(index.terms.begin() + static_cast<std::ptrdiff_t>(std::min(a, b)));
      if (sum->scale != 0) add_scaled(index, divide(sum->inner, sum->divisor, sum->modulus, extents), sum->scale);
      return true;
    }
  }
  return false;
}

}  // namespace

int64_t largest(const Affine& affine, Extents extents) {
  int64_t sum = affine.offset;
  for (size_t d = 0; d < affine.strides.size(); ++d) {
    if (affine.strides[d] == 0 || extents[d] <= 1) continue;
    int64_t part = 0;
    const bool overflow =
        __builtin_mul_overflow(affine.strides[d], extents[d] - 1, &part) || __builtin_add_overflow(sum, part, &sum);
    if (overflow) return std::numeric_limits<int64_t>::max();
  }
  return sum;
}

Index zero_index(size_t rank) { return {{0, std::vector<int64_t>(rank, 0)}, {}}; }

void add_scaled(Index& into, const Index& other, int64_t scale) {
  if (scale == 0) return;
  into.affine.offset += scale * other.affine.offset;
  if (into.affine.strides.size() < other.affine.strides.size())
    into.affine.strides.resize(other.affine.strides.size(), 0);
  for (size_t d = 0; d < other.affine.strides.size(); ++d) into.affine.strides[d] += scale * other.affine.strides[d];
  for (QuasiTerm term : other.terms) {
    term.scale *= scale;
    into.terms.push_back(std::move(term));
  }
}

Index divide(Affine inner, int64_t divisor, int64_t modulus, Extents extents) {
  Index result = zero_index(extents.size());
  inner.strides.resize(extents.size(), 0);
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] <= 1) inner.strides[d] = 0;
  }
  if (modulus != 0) {
    inner = quotient_and_remainder(inner, divisor * modulus).small;
    if (largest(inner, extents) < divisor * modulus) modulus = 0;
  }
  if (modulus == 0) {
    Parts parts = quotient_and_remainder(inner, divisor);
    result.affine = std::move(parts.large);
    if (largest(parts.small, extents) < divisor) return result;
    inner = std::move(parts.small);
  }
  // (unit * large + small) / (unit * d) is large / d.
  if (const auto coarse = split(inner, divisor, 1, extents)) {
    add_scaled(result, divide(coarse->large, divisor / coarse->unit, modulus, extents), 1);
    return result;
  }
  // (n * large + small) % (n * m) is n * (large % m) + small.
  const auto wrapped = modulus == 0 ? std::nullopt : split(inner, divisor * modulus, divisor, extents);
  if (wrapped && wrapped->unit > divisor) {
    const int64_t count = wrapped->unit / divisor;
    add_scaled(result, divide(wrapped->large, 1, modulus / count, extents), count);
    add_scaled(result, divide(wrapped->small, divisor, 0, extents), 1);
    return result;
  }
  result.terms.push_back({1, std::move(inner), divisor, modulus});
  return result;
}

Index recombine(Index index, Extents extents) {
  while (join_pair(index, extents)) {
  }
  std::erase_if(index.terms, [](const QuasiTerm& term) { return term.scale == 0; });
  std::sort(index.terms.begin(), index.terms.end(),
            [](const QuasiTerm& a, const QuasiTerm& b) { return key(a) < key(b); });
  return index;
}

}  // namespace sinter::ir
