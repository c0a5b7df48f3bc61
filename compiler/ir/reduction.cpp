#include "compiler/ir/reduction.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "compiler/support/errors.h"

namespace sinter::ir {
namespace {

constexpr auto rows = std::to_array<ReductionRow>({
    // name   combine        identity           dtypes
    {"sum", "add", Identity::zero, ReducedDTypes::numbers},
    {"prod", "mul", Identity::one, ReducedDTypes::numbers},
    {"max", "maximum", Identity::lowest, ReducedDTypes::numbers},
    {"min", "minimum", Identity::highest, ReducedDTypes::numbers},
    {"any", "bitwise_or", Identity::zero, ReducedDTypes::booleans},
    {"all", "bitwise_and", Identity::one, ReducedDTypes::booleans},
});

/// The least and the largest integer of a dtype.
std::array<int64_t, 2> integer_range(DType dtype) {
  const auto of = []<class Integer>(Integer) {
    using Limits = std::numeric_limits<Integer>;
    return std::array<int64_t, 2>{static_cast<int64_t>(Limits::min()), static_cast<int64_t>(Limits::max())};
  };
  switch (dtype) {
    case DType::i64:
      return of(int64_t{});
    case DType::i32:
      return of(int32_t{});
    case DType::i16:
      return of(int16_t{});
    case DType::i8:
      return of(int8_t{});
    case DType::u8:
      return of(uint8_t{});
    default:
      return {0, 1};
  }
}

Scalar extreme(DType dtype, bool highest) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) return highest ? infinity : -infinity;
  return integer_range(dtype)[highest ? 1 : 0];
}

Scalar number(DType dtype, int64_t value) {
  if (dtype == DType::b8) return value != 0;
  if (is_float(dtype)) return static_cast<double>(value);
  return value;
}

}  // namespace

std::span<const ReductionRow> reduction_table() { return rows; }

const ReductionRow& row(ReductionId reduction) { return rows[reduction.index]; }

std::optional<ReductionId> find_reduction(std::string_view name) {
  const auto found = std::ranges::find(rows, name, &ReductionRow::name);
  if (found == rows.end()) return std::nullopt;
  return ReductionId{static_cast<uint32_t>(found - rows.begin())};
}

ReductionId reduction_named(std::string_view name) {
  if (const auto found = find_reduction(name)) return *found;
  throw InternalError("reduction table", "no row is named " + std::string(name));
}

OpId combiner(ReductionId reduction) { return op_named(row(reduction).combine); }

Scalar identity(ReductionId reduction, DType dtype) {
  switch (row(reduction).identity) {
    case Identity::zero:
      return number(dtype, 0);
    case Identity::one:
      return number(dtype, 1);
    case Identity::lowest:
      return extreme(dtype, false);
    case Identity::highest:
      return extreme(dtype, true);
  }
  return number(dtype, 0);
}

bool reduces(ReductionId reduction, DType dtype) {
  if (row(reduction).dtypes == ReducedDTypes::booleans) return dtype == DType::b8;
  return is_kernel_dtype(dtype) && !is_half(dtype) && dtype != DType::b8;
}

}  // namespace sinter::ir
