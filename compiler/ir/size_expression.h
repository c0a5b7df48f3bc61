#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/type.h"
#include "compiler/support/strong_id.h"

namespace sinter::ir {

struct SizeTag;
using SizeId = StrongId<SizeTag>;  ///< index of a term of a SizeTable

/// One number as a function of symbols.
struct SizeTerm {
  enum class Kind : uint8_t {
    constant,  ///< `number`
    symbol,    ///< symbol `number`
    sum,       ///< left + right
    product,   ///< left * right
    quotient,  ///< left / number, rounded down; number > 0
    minimum,   ///< the smaller of left and right
  };
  Kind kind = Kind::constant;
  int64_t number = 0;
  SizeId left, right;
};

/// Numbers of a graph as functions of the sizes that change from call to call: sums, products, floor divisions
/// and minima, which share subterms. A term only refers to terms made before it. Not thread-safe while it grows.
class SizeTable {
 public:
  SizeId constant(int64_t number) { return add({SizeTerm::Kind::constant, number, {}, {}}); }
  SizeId symbol(SymbolId id) { return add({SizeTerm::Kind::symbol, id.index, {}, {}}); }
  SizeId sum(SizeId left, SizeId right) { return add({SizeTerm::Kind::sum, 0, left, right}); }
  SizeId product(SizeId left, SizeId right) { return add({SizeTerm::Kind::product, 0, left, right}); }
  SizeId quotient(SizeId left, int64_t divisor) { return add({SizeTerm::Kind::quotient, divisor, left, {}}); }
  SizeId minimum(SizeId left, SizeId right) { return add({SizeTerm::Kind::minimum, 0, left, right}); }
  /// a * term + b, without what changes nothing.
  SizeId affine(SizeId term, int64_t factor, int64_t offset);

  [[nodiscard]] size_t size() const { return terms_.size(); }
  [[nodiscard]] const SizeTerm& term(SizeId id) const { return terms_[id.index]; }

  /// The value of every term, by id, where symbol i is `symbols[i]`; nothing when a number leaves 64 bits.
  [[nodiscard]] std::optional<std::vector<int64_t>> evaluate(std::span<const int64_t> symbols) const;
  /// The value of one term, given those of the terms before it; nothing on overflow.
  [[nodiscard]] std::optional<int64_t> evaluate(const SizeTerm& term, std::span<const int64_t> symbols,
                                                std::span<const int64_t> earlier) const;
  /// "s0", "4*s0*s1", "(s0+1)/2".
  [[nodiscard]] std::string text(SizeId id) const;

 private:
  SizeId add(SizeTerm term);
  std::vector<SizeTerm> terms_;
};

}  // namespace sinter::ir
