#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compiler/ir/arg.h"
#include "compiler/ir/op.h"

namespace sinter::ir {

struct ReductionTag;
using ReductionId = StrongId<ReductionTag>;  ///< index of a row of the reduction table

/// The value that a combiner leaves as it is.
enum class Identity : uint8_t {
  zero,     ///< 0; false
  one,      ///< 1; true
  lowest,   ///< -inf, or the least integer
  highest,  ///< inf, or the largest integer
};

/// Which dtypes a reduction works in. Halves are cast before and after.
enum class ReducedDTypes : uint8_t { numbers, booleans };

/// One row of the reduction table: many elements become one by a pointwise op that is associative and commutative up
/// to rounding. Reference, CUDA and LLVM text are those of that op.
struct ReductionRow {
  std::string_view name;     ///< name in the IR, "sum"
  std::string_view combine;  ///< the row of the op table that joins two elements, "add"
  Identity identity;
  ReducedDTypes dtypes;
};

[[nodiscard]] std::span<const ReductionRow> reduction_table();
[[nodiscard]] const ReductionRow& row(ReductionId reduction);
/// By IR name ("sum").
[[nodiscard]] std::optional<ReductionId> find_reduction(std::string_view name);
/// By IR name; throws InternalError when the table has no such row.
[[nodiscard]] ReductionId reduction_named(std::string_view name);

/// The op that joins two elements.
[[nodiscard]] OpId combiner(ReductionId reduction);
/// The number that joins with any element of the dtype without changing it.
[[nodiscard]] Scalar identity(ReductionId reduction, DType dtype);
/// True when the reduction takes elements of the dtype.
[[nodiscard]] bool reduces(ReductionId reduction, DType dtype);

}  // namespace sinter::ir
