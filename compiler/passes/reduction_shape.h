#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/type.h"
#include "compiler/support/device_info.h"

namespace sinter::passes {

/// Elements that one block joins at most.
inline constexpr int64_t longest_row = 65536;

/// True when the dim is one of `dims`, which are ascending.
[[nodiscard]] bool has_dim(const std::vector<uint32_t>& dims, size_t dim);

/// How a reduction's operand lies in memory.
struct ReductionShape {
  int64_t rows = 1;     ///< elements of the result
  int64_t points = 1;   ///< elements that are joined to one
  bool across = false;  ///< neighbours in memory belong to different rows
  int64_t run = 1;      ///< neighbours in memory that belong together: of one row, or across of rows next to each other
  int64_t piece = 1;    ///< a run, and where rows lie across with all their elements behind each other, those as well
};

/// Nothing where no dim has neighbours in memory. `dims` are ascending, the type is static.
[[nodiscard]] std::optional<ReductionShape> reduction_shape(const ir::Type& operand, const std::vector<uint32_t>& dims);

/// True when the reduction takes longer in one kernel than in two: too few blocks go through too much each.
/// `instructions` are those that compute an element of the operand.
[[nodiscard]] bool gains_by_splitting(const ir::Type& operand, const ReductionShape& shape, const DeviceInfo& device,
                                      int64_t instructions = 0);

/// A reduction in two: dim `dim` of the operand becomes `parts` parts, which are reduced each and then joined. Dims
/// `later` are left to the second.
struct ReductionSplit {
  uint32_t dim = 0;
  int64_t parts = 1;
  std::vector<uint32_t> later = {};  ///< ascending
};

/// The split that gives a large reduction with few rows enough rows to keep the device busy, or whole lines of memory
/// to read: the channels of a group lie side by side in a channels-last image, those of all groups beside them. Nothing
/// where it has both as it is, where two kernels would take longer, and where no dim divides into parts.
[[nodiscard]] std::optional<ReductionSplit> reduction_split(const ir::Type& operand, const std::vector<uint32_t>& dims,
                                                            const DeviceInfo& device, int64_t instructions = 0);

}  // namespace sinter::passes
