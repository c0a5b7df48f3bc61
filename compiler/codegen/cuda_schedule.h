#pragma once

#include <cstdint>
#include <vector>

#include "compiler/codegen/cuda_access.h"
#include "compiler/kernel/kernel.h"
#include "compiler/support/device_info.h"

namespace sinter::codegen {

/// Neighbouring threads of a kernel that reads across rows: `rows` of them take neighbours along loop `dim`, so that
/// they share a 32-byte sector of what is read there, and only then come `vectors` along the innermost loop, which fill
/// a sector of what is written; then `groups` more of the rows, to the end of a 128-byte line.
struct Tile {
  size_t dim = 0;
  int64_t rows = 1;
  int64_t vectors = 1;
  int64_t groups = 1;
  [[nodiscard]] bool used() const { return rows > 1; }
};

/// How the points of the nest are dealt to threads. A thread takes `unroll` vectors of `width` neighbouring points,
/// `block` vectors apart; the `tail` points after the last full vector are taken one a thread.
struct Schedule {
  int64_t width = 1;
  int64_t unroll = 1;
  int64_t vectors = 0;
  int64_t tail = 0;
  bool linear = false;  ///< vectors are neighbours in the whole nest, not in the innermost loop: lanes may cross rows
  bool wide = false;    ///< indices need 64 bits
  Tile tile;            ///< order of the vectors; row-major where unused
  uint32_t block = 256;
  uint32_t grid = 1;
  std::vector<bool> shared;        ///< by slot: guards that all lanes of a vector have in common
  std::vector<LaneAccess> loads;   ///< by slot; meaningful where the slot is a load
  std::vector<LaneAccess> stores;  ///< by store
};

[[nodiscard]] Schedule schedule(const kernel::Kernel& kernel, const DeviceInfo& device);

}  // namespace sinter::codegen
