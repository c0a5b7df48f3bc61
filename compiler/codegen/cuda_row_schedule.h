#pragma once

#include <cstdint>
#include <vector>

#include "compiler/codegen/cuda_access.h"
#include "compiler/codegen/row_passes.h"
#include "compiler/kernel/kernel.h"
#include "compiler/support/device_info.h"

namespace sinter::codegen {

/// How a kernel with reduced loops is dealt to threads. `threads` of a block share a row: each takes `steps` vectors of
/// `width` neighbouring points, `threads` vectors apart.
/// Where memory runs along rows, these threads are neighbours: a part of a warp, a warp, or the block. Where it runs
/// across them, neighbours work on 32 rows that lie next to each other, each with one thread of every warp.
/// Where stores join rows, the same threads go through all rows of a group, one after the other, and hold what they
/// join.
struct RowSchedule {
  bool across = false;
  int64_t width = 1;     ///< 1 across rows
  int64_t threads = 32;  ///< along rows a power of two up to 32, or a multiple of 32
  int64_t steps = 1;
  int64_t group = 1;           ///< rows that the same threads go through
  int64_t rows_per_block = 1;  ///< at a time
  Keep keep = Keep::small;
  RowPasses passes;
  bool wide = false;  ///< indices need 64 bits
  uint32_t block = 32;
  uint32_t grid = 1;
  uint32_t resident = 0;           ///< blocks that a multiprocessor is to hold; 0 where it does not matter
  std::vector<bool> shared;        ///< by slot: guards that all lanes of a vector have in common
  std::vector<LaneAccess> loads;   ///< by slot; meaningful where the slot is a load
  std::vector<LaneAccess> stores;  ///< by store
};

/// The schedule of a kernel with `reduced` loops and at least one point.
[[nodiscard]] RowSchedule row_schedule(const kernel::Kernel& kernel, const DeviceInfo& device);

}  // namespace sinter::codegen
