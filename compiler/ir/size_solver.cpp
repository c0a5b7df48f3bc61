#include "compiler/ir/size_solver.h"

#include <algorithm>
#include <limits>

namespace sinter::ir {
namespace {

using Samples = SizeSolver::Samples;

/// Products and sums of samples; empty where one leaves 64 bits.
template <class Operation>
Samples combine(const Samples& a, const Samples& b, Operation overflows) {
  Samples result(a.size());
  for (size_t k = 0; k < a.size(); ++k) {
    if (overflows(a[k], b[k], &result[k])) return {};
  }
  return result;
}

Samples multiplied(const Samples& a, const Samples& b) {
  return combine(a, b, [](int64_t x, int64_t y, int64_t* out) { return __builtin_mul_overflow(x, y, out); });
}
Samples added(const Samples& a, const Samples& b) {
  return combine(a, b, [](int64_t x, int64_t y, int64_t* out) { return __builtin_add_overflow(x, y, out); });
}
Samples subtracted(const Samples& a, const Samples& b) {
  return combine(a, b, [](int64_t x, int64_t y, int64_t* out) { return __builtin_sub_overflow(x, y, out); });
}

/// The number that `wanted` is of `term` in every sample.
std::optional<int64_t> ratio(const Samples& wanted, const Samples& term) {
  if (term.empty() || term[0] == 0 || wanted[0] % term[0] != 0) return std::nullopt;
  const int64_t factor = wanted[0] / term[0];
  int64_t product = 0;
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (__builtin_mul_overflow(factor, term[k], &product) || product != wanted[k]) return std::nullopt;
  }
  return factor;
}

/// What is added to `term` in every sample.
std::optional<int64_t> distance(const Samples& wanted, const Samples& term) {
  const Samples difference = term.empty() ? Samples{} : subtracted(wanted, term);
  if (difference.empty()) return std::nullopt;
  const bool same = std::ranges::all_of(difference, [&](int64_t d) { return d == difference[0]; });
  return same ? std::optional(difference[0]) : std::nullopt;
}

}  // namespace

SizeSolver::SizeSolver(SizeTable& table, const std::vector<Samples>& symbols)
    : table_(table), symbol_values_(symbols.empty() ? 0 : symbols[0].size()), term_values_(symbol_values_.size()) {
  for (size_t k = 0; k < symbol_values_.size(); ++k) {
    for (const Samples& symbol : symbols) symbol_values_[k].push_back(symbol[k]);
  }
  for (uint32_t i = 0; i < symbols.size(); ++i) symbols_.push_back(table_.symbol({i}));
}

Samples SizeSolver::samples(SizeId term) {
  Samples samples;
  for (size_t k = 0; k < term_values_.size(); ++k) {
    auto& values = term_values_[k];
    while (values.size() <= term.index) {
      const SizeId next{static_cast<uint32_t>(values.size())};
      values.push_back(table_.evaluate(table_.term(next), symbol_values_[k], values).value_or(0));
    }
    samples.push_back(values[term.index]);
  }
  return samples;
}

SizeSolver::Basis SizeSolver::basis(std::span<const SizeId> nearby) {
  Basis basis;
  std::vector<Samples> seen;
  const auto add = [&](SizeId term) {
    Samples values = samples(term);
    if (std::ranges::find(seen, values) != seen.end()) return;
    seen.push_back(std::move(values));
    basis.push_back(term);
  };
  for (const SizeId term : nearby) add(term);
  for (const SizeId term : symbols_) add(term);
  return basis;
}

std::optional<SizeId> SizeSolver::solve(const Samples& wanted, std::span<const SizeId> nearby) {
  const Basis terms = basis(nearby);
  const auto first = [&](auto form) -> std::optional<SizeId> {
    for (const SizeId term : terms) {
      if (auto found = (this->*form)(wanted, term)) return found;
    }
    return std::nullopt;
  };
  if (auto found = first(&SizeSolver::multiple)) return found;
  if (auto found = of_two(wanted, terms)) return found;
  if (auto found = first(&SizeSolver::shifted)) return found;
  if (auto found = of_three(wanted, terms)) return found;
  if (auto found = sum_of_two(wanted, terms)) return found;
  if (auto found = first(&SizeSolver::affine)) return found;
  return first(&SizeSolver::quotient);
}

std::optional<SizeId> SizeSolver::multiple(const Samples& wanted, SizeId term) {
  const auto factor = ratio(wanted, samples(term));
  if (!factor || *factor == 0) return std::nullopt;
  return table_.affine(term, *factor, 0);
}

std::optional<SizeId> SizeSolver::shifted(const Samples& wanted, SizeId term) {
  const auto offset = distance(wanted, samples(term));
  return offset ? std::optional(table_.affine(term, 1, *offset)) : std::nullopt;
}

std::optional<SizeId> SizeSolver::of_two(const Samples& wanted, const Basis& basis) {
  for (size_t a = 0; a < basis.size(); ++a) {
    for (size_t b = a; b < basis.size(); ++b) {
      const auto factor = ratio(wanted, multiplied(samples(basis[a]), samples(basis[b])));
      if (factor && *factor != 0) return table_.affine(table_.product(basis[a], basis[b]), *factor, 0);
    }
  }
  return std::nullopt;
}

std::optional<SizeId> SizeSolver::of_three(const Samples& wanted, const Basis& basis) {
  for (size_t a = 0; a < basis.size(); ++a) {
    for (size_t b = a; b < basis.size(); ++b) {
      const Samples two = multiplied(samples(basis[a]), samples(basis[b]));
      for (size_t c = b; c < basis.size() && !two.empty(); ++c) {
        const auto factor = ratio(wanted, multiplied(two, samples(basis[c])));
        if (!factor || *factor == 0) continue;
        return table_.affine(table_.product(table_.product(basis[a], basis[b]), basis[c]), *factor, 0);
      }
    }
  }
  return std::nullopt;
}

std::optional<SizeId> SizeSolver::sum_of_two(const Samples& wanted, const Basis& basis) {
  for (const SizeId a : basis) {
    for (const SizeId b : basis) {
      if (a == b) continue;
      if (const auto offset = distance(wanted, added(samples(a), samples(b))); offset && a < b) {
        return table_.affine(table_.sum(a, b), 1, *offset);
      }
      if (const auto offset = distance(wanted, subtracted(samples(a), samples(b)))) {
        return table_.affine(table_.sum(a, table_.affine(b, -1, 0)), 1, *offset);
      }
    }
  }
  return std::nullopt;
}

std::optional<SizeId> SizeSolver::affine(const Samples& wanted, SizeId term) {
  const Samples values = samples(term);
  const auto other = std::ranges::find_if(values, [&](int64_t value) { return value != values[0]; });
  if (other == values.end()) return std::nullopt;
  const auto k = static_cast<size_t>(other - values.begin());
  const int64_t run = values[k] - values[0];
  const int64_t rise = wanted[k] - wanted[0];
  if (rise == 0 || rise % run != 0) return std::nullopt;
  const int64_t factor = rise / run;
  const auto offset = distance(wanted, multiplied(values, Samples(values.size(), factor)));
  return offset ? std::optional(table_.affine(term, factor, *offset)) : std::nullopt;
}

/// (term + b) / c rounded down, for the smallest c, and of the b that fit all samples the one next to 0.
std::optional<SizeId> SizeSolver::quotient(const Samples& wanted, SizeId term) {
  constexpr int64_t largest_divisor = 1024;
  const Samples values = samples(term);
  for (int64_t divisor = 2; divisor <= largest_divisor; ++divisor) {
    int64_t low = std::numeric_limits<int64_t>::min();
    int64_t high = std::numeric_limits<int64_t>::max();
    for (size_t k = 0; k < values.size(); ++k) {
      int64_t shift = 0;
      if (__builtin_mul_overflow(divisor, wanted[k], &shift)) return std::nullopt;
      if (__builtin_sub_overflow(shift, values[k], &shift)) return std::nullopt;
      low = std::max(low, shift);
      high = std::min(high, shift + divisor - 1);
    }
    if (low > high) continue;
    const SizeId dividend = table_.affine(term, 1, std::clamp<int64_t>(0, low, high));
    roundings_.push_back({dividend, divisor});
    return table_.quotient(dividend, divisor);
  }
  return std::nullopt;
}

}  // namespace sinter::ir
