#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/codegen/cuda_access.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/windows.h"
#include "compiler/support/device_info.h"

namespace sinter::codegen {

/// How a kernel of windows is dealt to threads: each has `width` neighbours in memory of a tile of `outputs` neighbours
/// along one loop, and goes through all taps of them. What the windows of a tile have in common it reads once.
struct WindowSchedule {
  /// A part of a thread's number: the position along a loop in steps of so many.
  struct Digit {
    size_t loop = 0;
    int64_t count = 1;
    int64_t step = 1;
  };
  kernel::Windows windows;
  int64_t width = 1;
  int64_t outputs = 1;
  int64_t positions = 1;      ///< that the windows of a tile cover along its loop
  bool partial = false;       ///< the last tile of a loop has fewer outputs
  std::vector<Digit> digits;  ///< of a thread's number, the lowest first: neighbours share lines, blocks share windows
  bool wide = false;          ///< indices need 64 bits
  uint32_t block = 256;
  uint32_t grid = 1;
  std::vector<LaneAccess> loads;   ///< by slot; meaningful where the slot is a load
  std::vector<LaneAccess> stores;  ///< by store

  [[nodiscard]] int64_t threads() const;
};

/// Nothing where the kernel is none of windows, or where its text takes sizes as parameters.
[[nodiscard]] std::optional<WindowSchedule> window_schedule(const kernel::Kernel& kernel, const DeviceInfo& device);

}  // namespace sinter::codegen
