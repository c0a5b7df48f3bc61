#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/codegen/cuda_access.h"
#include "compiler/kernel/kernel.h"
#include "compiler/support/device_info.h"

namespace sinter::codegen {

/// How a kernel that does much with each short row is dealt to threads: `threads` of a warp share a row, each has
/// `width` neighbouring points of it, and they run the body in its order. Values live from where they are computed to
/// their last use: a chain of many steps holds what one step hands to the next, where passes through the row would hold
/// the sums of all steps at once.
struct ShortRowSchedule {
  int64_t width = 1;
  int64_t threads = 1;         ///< a power of two
  int64_t rows_per_block = 1;  ///< side by side
  bool wide = false;           ///< indices need 64 bits
  uint32_t block = 128;
  uint32_t grid = 1;
  std::vector<LaneAccess> loads;   ///< by slot; meaningful where the slot is a load
  std::vector<LaneAccess> stores;  ///< by store; a value of the row that is a `vector` of `chunk` is the first of so
                                   ///< many stores that one access does
};

/// Nothing for kernels whose rows are not short, and for those that need few registers in passes.
[[nodiscard]] std::optional<ShortRowSchedule> short_row_schedule(const kernel::Kernel& kernel,
                                                                 const DeviceInfo& device);

}  // namespace sinter::codegen
