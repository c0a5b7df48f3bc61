#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/size_expression.h"

namespace sinter::ir {

/// Finds how numbers follow from symbols, given what both were in a few samples. Among the forms that fit every sample
/// the simplest is taken: a term there is, a multiple, a product of two, a shifted term, a product of three, a sum or
/// difference of two, an affine form, a floor division. Not thread-safe.
class SizeSolver {
 public:
  /// What the numbers of one place were, by sample.
  using Samples = std::vector<int64_t>;

  /// `symbols[i]` are the samples of symbol i.
  SizeSolver(SizeTable& table, const std::vector<Samples>& symbols);

  /// A term that has these values in the samples, made of `nearby` terms and of symbols; nothing when no form fits.
  [[nodiscard]] std::optional<SizeId> solve(const Samples& wanted, std::span<const SizeId> nearby);

  /// The samples of a term, whoever made it.
  [[nodiscard]] Samples samples(SizeId term);

  /// A floor division found by trial: any divisor's remainder that no sample had may round another way.
  struct Rounding {
    SizeId dividend;
    int64_t divisor = 1;
  };
  [[nodiscard]] const std::vector<Rounding>& roundings() const { return roundings_; }

 private:
  using Basis = std::vector<SizeId>;
  [[nodiscard]] Basis basis(std::span<const SizeId> nearby);
  [[nodiscard]] std::optional<SizeId> multiple(const Samples& wanted, SizeId term);
  [[nodiscard]] std::optional<SizeId> shifted(const Samples& wanted, SizeId term);
  [[nodiscard]] std::optional<SizeId> of_two(const Samples& wanted, const Basis& basis);
  [[nodiscard]] std::optional<SizeId> of_three(const Samples& wanted, const Basis& basis);
  [[nodiscard]] std::optional<SizeId> sum_of_two(const Samples& wanted, const Basis& basis);
  [[nodiscard]] std::optional<SizeId> affine(const Samples& wanted, SizeId term);
  [[nodiscard]] std::optional<SizeId> quotient(const Samples& wanted, SizeId term);

  SizeTable& table_;
  std::vector<std::vector<int64_t>> symbol_values_;  ///< by sample, then by symbol
  std::vector<std::vector<int64_t>> term_values_;    ///< by sample, then by term
  Basis symbols_;
  std::vector<Rounding> roundings_;
};

}  // namespace sinter::ir
