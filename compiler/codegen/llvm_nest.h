#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/index.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// How an access moves along the innermost loop.
enum class Walk : uint8_t {
  uniform,     ///< one element for the whole row
  contiguous,  ///< neighbours in memory
  strided,     ///< a fixed distance apart
  scattered,   ///< wherever the quasi-affine terms lead
};

/// One load or store of a kernel, or one question where a point lies, over the extents of a `Nest`.
struct Access {
  uint32_t param = 0;
  ir::Index index;
  Walk walk = Walk::uniform;
  bool varies_by_row = false;  ///< the row's first element is not the same in every row
};

/// The loops as the CPU runs them: at least one dim; short inner dims are joined into one that is long enough to
/// fill vectors, at the price of divisions in the indices of accesses that do not follow it.
struct Nest {
  std::vector<int64_t> extents;
  std::vector<Access> loads;   ///< by slot; meaningful for loads from memory, and for questions where a point lies
  std::vector<Access> stores;  ///< in the order of the kernel's stores

  [[nodiscard]] int64_t inner() const { return extents.back(); }
  [[nodiscard]] size_t rank() const { return extents.size(); }
  [[nodiscard]] int64_t numel() const;
};

/// Rows to run together, a vector of columns at a time, because some access finds its neighbours in the next row (a
/// transposed operand): each cache line it touches is then used up before it is lost. 1 where no access does.
[[nodiscard]] int64_t rows_per_block(const kernel::Kernel& kernel, const Nest& nest);

/// `lanes` is the number of elements of one vector.
[[nodiscard]] Nest make_nest(const kernel::Kernel& kernel, int64_t lanes);

/// The loops of a kernel that reduces, whose vectors hold neighbouring points of one row: outer loops, then the reduced
/// ones, of which short inner ones are joined.
[[nodiscard]] Nest make_nest_along_rows(const kernel::Kernel& kernel, int64_t lanes);
/// The same, where vectors hold neighbouring rows: the innermost loop that is not reduced comes last.
[[nodiscard]] Nest make_nest_across_rows(const kernel::Kernel& kernel);

/// Stride of a dim; 0 where the list is shorter.
[[nodiscard]] int64_t stride_of(const ir::Affine& affine, size_t dim);

}  // namespace sinter::codegen
