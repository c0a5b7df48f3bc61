#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/index.h"
#include "compiler/kernel/region.h"

namespace sinter::kernel {

/// Elements of a row up to which a block holds it, and what it joins of a group of rows, in registers.
inline constexpr int64_t longest_row_of_group = 8192;
/// Threads of a multiprocessor that go through groups of rows: it has 48 registers for each of so many.
inline constexpr int64_t most_threads_of_groups = 1344;

/// The index of each dim of a value, over the loops of a nest.
using Map = std::vector<ir::Index>;

/// The loops of a region before they are collapsed: one for each dim longer than 1 of its *space*, which is the operand
/// of its first reduction, or its first output where it has none. Reduced dims are innermost; otherwise loops run by
/// falling stride: of an output with an element for each row, else of the space. Where a region reduces rows, and sums
/// of their elements over a dim before them too, the space is the operand of such a sum: rows come in groups then.
class Nest {
 public:
  [[nodiscard]] static Nest of(const Region& region);

  [[nodiscard]] const std::vector<int64_t>& extents() const { return extents_; }
  [[nodiscard]] size_t reduced() const { return row_loops_.size(); }
  [[nodiscard]] int64_t numel() const;
  [[nodiscard]] int64_t rows() const;

  /// An index that is 0 everywhere.
  [[nodiscard]] ir::Index zero() const;

  /// Where the elements of an output are computed: one of the space's sizes, of as many elements, or of as many as
  /// there are rows, in the order of its memory as far as that of the space, or of the first reduction's result, has
  /// the same. Nothing for other sizes.
  [[nodiscard]] std::optional<Map> points(const ir::Type& output) const;

  /// Where a reduction's operand is read, if its result is wanted at `at`: its reduced dims run along the reduced
  /// loops. Nothing where these are other loops, where `at` changes along them, or where the rows are not as many.
  [[nodiscard]] std::optional<Map> row_of(const ir::Type& operand, const std::vector<uint32_t>& dims,
                                          const Map& at) const;

  /// True for a reduction of such groups: its one dim longer than 1 is the last loop that is not reduced.
  [[nodiscard]] bool joins_groups(const ir::Type& operand, const std::vector<uint32_t>& dims) const;
  /// Where a value of the space's type is computed.
  [[nodiscard]] Map points_of_space() const { return points_like(space_, space_).value(); }

  /// `outer` addresses by dims, `dims` gives these over the loops. Nothing where divisions would have to nest.
  [[nodiscard]] std::optional<ir::Index> substitute(const ir::Index& outer, const Map& dims) const;
  [[nodiscard]] std::optional<Map> substitute(const std::vector<ir::Index>& outer, const Map& dims) const;

 private:
  Nest(const ir::Type& space, const std::vector<uint32_t>& reduced, const ir::Type& kept,
       const std::vector<int64_t>& outer_strides);

  [[nodiscard]] ir::Index loop(size_t number) const;
  [[nodiscard]] std::optional<Map> points_like(const ir::Type& output, const ir::Type& like) const;

  ir::Type space_;
  ir::Type kept_;  ///< what the first reduction gives: the space with reduced dims of size 1
  std::vector<int64_t> extents_;
  std::vector<std::optional<size_t>> loop_of_;  ///< by dim of the space
  bool in_groups_ = false;
  std::vector<size_t> row_loops_;  ///< loops of the reduced dims longer than 1, in the order of the dims
};

}  // namespace sinter::kernel
