#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/codegen/cuda_access.h"
#include "compiler/codegen/row_passes.h"
#include "compiler/kernel/kernel.h"
#include "compiler/support/device_info.h"

namespace sinter::codegen {

/// How a kernel whose rows lie side by side in memory, and which goes through them once, is dealt to threads. A thread
/// has `width` neighbouring rows ("columns", as they lie), `beside` threads are neighbours, and `lanes` share columns.
struct ColumnSchedule {
  int64_t width = 1;  ///< of one access, at least 2
  int64_t beside = 1;
  int64_t lanes = 1;  ///< a power of two; each takes every lanes-th point of its rows
  int64_t batch = 1;  ///< points whose elements a thread loads before it computes with the first of them
  RowPasses passes;   ///< one
  bool wide = false;  ///< indices need 64 bits
  uint32_t block = 128;
  uint32_t grid = 1;
  std::vector<LaneAccess> loads;   ///< by slot; meaningful where the slot is a load
  std::vector<LaneAccess> stores;  ///< by store
};

/// Nothing for kernels whose rows are no columns, that have several passes, joins or sizes as parameters, and where
/// some element is not reached by vectors of columns.
[[nodiscard]] std::optional<ColumnSchedule> column_schedule(const kernel::Kernel& kernel, const DeviceInfo& device);

}  // namespace sinter::codegen
