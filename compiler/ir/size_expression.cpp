#include "compiler/ir/size_expression.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinter::ir {
namespace {

int64_t floor_divide(int64_t number, int64_t divisor) {
  const int64_t quotient = number / divisor;
  return number % divisor < 0 ? quotient - 1 : quotient;
}

bool binds_looser_than_product(const SizeTerm& term) { return term.kind == SizeTerm::Kind::sum; }

}  // namespace

SizeId SizeTable::add(SizeTerm term) {
  terms_.push_back(term);
  return {static_cast<uint32_t>(terms_.size() - 1)};
}

SizeId SizeTable::affine(SizeId term, int64_t factor, int64_t offset) {
  if (factor != 1) term = product(constant(factor), term);
  return offset == 0 ? term : sum(term, constant(offset));
}

std::optional<int64_t> SizeTable::evaluate(const SizeTerm& term, std::span<const int64_t> symbols,
                                           std::span<const int64_t> earlier) const {
  int64_t value = 0;
  switch (term.kind) {
    case SizeTerm::Kind::constant:
      return term.number;
    case SizeTerm::Kind::symbol:
      return symbols[static_cast<size_t>(term.number)];
    case SizeTerm::Kind::sum:
      if (__builtin_add_overflow(earlier[term.left.index], earlier[term.right.index], &value)) return std::nullopt;
      return value;
    case SizeTerm::Kind::product:
      if (__builtin_mul_overflow(earlier[term.left.index], earlier[term.right.index], &value)) return std::nullopt;
      return value;
    case SizeTerm::Kind::quotient:
      return floor_divide(earlier[term.left.index], term.number);
    case SizeTerm::Kind::minimum:
      return std::min(earlier[term.left.index], earlier[term.right.index]);
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> SizeTable::evaluate(std::span<const int64_t> symbols) const {
  std::vector<int64_t> values;
  values.reserve(terms_.size());
  for (const SizeTerm& term : terms_) {
    const auto value = evaluate(term, symbols, values);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::string SizeTable::text(SizeId id) const {
  const SizeTerm& term = terms_[id.index];
  const auto is_negation = [this](const SizeTerm& factor) {
    if (factor.kind != SizeTerm::Kind::product) return false;
    const SizeTerm& left = terms_[factor.left.index];
    return left.kind == SizeTerm::Kind::constant && left.number == -1;
  };
  const auto operand = [this](SizeId inner) {
    return binds_looser_than_product(terms_[inner.index]) ? "(" + text(inner) + ")" : text(inner);
  };
  switch (term.kind) {
    case SizeTerm::Kind::constant:
      return fmt::format("{}", term.number);
    case SizeTerm::Kind::symbol:
      return fmt::format("s{}", term.number);
    case SizeTerm::Kind::sum: {
      const SizeTerm& right = terms_[term.right.index];
      if (is_negation(right)) return text(term.left) + "-" + operand(right.right);
      const bool minus = right.kind == SizeTerm::Kind::constant && right.number < 0;
      return text(term.left) + (minus ? "" : "+") + text(term.right);
    }
    case SizeTerm::Kind::product:
      return operand(term.left) + "*" + operand(term.right);
    case SizeTerm::Kind::quotient: {
      const bool plain = terms_[term.left.index].kind == SizeTerm::Kind::symbol;
      return fmt::format("{}/{}", plain ? text(term.left) : "(" + text(term.left) + ")", term.number);
    }
    case SizeTerm::Kind::minimum:
      return "min(" + text(term.left) + ", " + text(term.right) + ")";
  }
  return {};
}

}  // namespace sinter::ir
