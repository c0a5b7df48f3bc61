#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/codegen/cuda_schedule.h"
#include "compiler/codegen/sizes.h"
#include "compiler/ir/index.h"

namespace sinter::codegen {

/// Writes index arithmetic in unsigned numbers of one width, so that divisions by constants become multiplications.
class IndexText {
 public:
  IndexText(bool wide, Sizes& sizes) : wide_(wide), sizes_(sizes) {}

  /// The type of an index: "unsigned" or "unsigned long long".
  [[nodiscard]] const char* type() const { return wide_ ? "unsigned long long" : "unsigned"; }
  /// The block that a thread is of, along the first dimension of the grid.
  [[nodiscard]] const char* block() const { return wide_ ? "(unsigned long long)blockIdx.x" : "blockIdx.x"; }
  /// The type of an index that may be negative.
  [[nodiscard]] const char* signed_type() const { return wide_ ? "long long" : "int"; }
  /// A number that belongs to the text: "5u" or "5ull"; negative numbers stand for their two's complement.
  [[nodiscard]] std::string literal(int64_t value) const;
  /// A number that sizes decide: the same, or the parameter that holds it, "n3".
  [[nodiscard]] std::string number(int64_t value) const;
  /// The same for a number of points or turns.
  [[nodiscard]] std::string count(int64_t value) const;
  /// The index at a point, given a text for each dim's position. Exact modulo 2^32 or 2^64, so parts may be negative.
  [[nodiscard]] std::string at(const ir::Index& index, const std::vector<std::string>& dims) const;
  /// Text for each dim's position from the text of the point's number in the nest.
  [[nodiscard]] std::vector<std::string> dims_of(const std::string& point, std::span<const int64_t> extents) const;
  /// The same from the number of a vector of `width` points, where vectors are dealt in tiles.
  [[nodiscard]] std::vector<std::string> tiled_dims_of(const std::string& vector, std::span<const int64_t> extents,
                                                       int64_t width, const Tile& tile) const;

 private:
  [[nodiscard]] std::string sum(const ir::Affine& affine, const std::vector<std::string>& dims) const;

  bool wide_;
  Sizes& sizes_;
};

}  // namespace sinter::codegen
