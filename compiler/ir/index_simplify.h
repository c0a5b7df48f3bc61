#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "compiler/ir/index.h"

/// Quasi-affine arithmetic under known ranges: variable d lies in [0, extents[d]). Results are exact at every point of
/// the nest. Strides and offsets of the terms' inner parts are never negative.
namespace sinter::ir {

/// The largest value of an expression without negative strides; saturates.
[[nodiscard]] int64_t largest(const Affine& affine, std::span<const int64_t> extents);

/// The index that is 0 everywhere.
[[nodiscard]] Index zero_index(size_t rank);

/// into += scale * other.
void add_scaled(Index& into, const Index& other, int64_t scale);

/// (inner / divisor) % modulus, rounding down; modulus 0 means none. Divisions and modulos that the ranges make exact
/// disappear, the others are made as small as they get: (4*i + j) / 12 with j < 4 is i / 3, and (4*i + j) % 12 is
/// 4 * (i % 3) + j.
[[nodiscard]] Index divide(Affine inner, int64_t divisor, int64_t modulus, std::span<const int64_t> extents);

/// Joins terms that are quotient and remainder of one expression, adds up equal terms, drops those that are 0 and
/// puts the rest in a fixed order.
[[nodiscard]] Index recombine(Index index, std::span<const int64_t> extents);

}  // namespace sinter::ir
