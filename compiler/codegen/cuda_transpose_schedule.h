#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/codegen/cuda_access.h"
#include "compiler/kernel/kernel.h"
#include "compiler/support/ceil_div.h"
#include "compiler/support/device_info.h"

namespace sinter::codegen {

/// How a kernel that reads along one loop and writes along another is dealt to threads: a block takes a square of both
/// loops. It reads what lies along `read_loop` row by row into shared memory, and goes on column by column, along the
/// innermost loop, so that neighbouring threads touch neighbours in memory both times.
struct TransposeSchedule {
  int64_t side = 32;  ///< points of the square along each loop
  /// Squares that cover a loop of either kind.
  [[nodiscard]] int64_t squares(int64_t extent) const { return ceil_div(extent, side); }
  size_t read_loop = 0;
  std::vector<bool> staged;  ///< by slot: loads that go through shared memory
  bool wide = false;         ///< indices need 64 bits
  uint32_t block = 256;
  uint32_t grid = 1;
  std::vector<LaneAccess> loads;   ///< by slot; meaningful where the slot is a load
  std::vector<LaneAccess> stores;  ///< by store
};

/// Nothing where no load of the kernel lies along another loop than the innermost one, or where the loops are too short
/// to fill squares.
[[nodiscard]] std::optional<TransposeSchedule> transpose_schedule(const kernel::Kernel& kernel,
                                                                  const DeviceInfo& device);

}  // namespace sinter::codegen
