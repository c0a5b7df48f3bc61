#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/support/device_info.h"

namespace sinter::codegen {

/// How one load or store of the loop body reaches memory.
struct LaneAccess {
  enum class Kind : uint8_t {
    scalar,   ///< a host scalar, passed by value
    uniform,  ///< one element for all lanes of a vector
    vector,   ///< neighbouring elements, `chunk` of them at a time
    strided,  ///< one element a lane, `stride` elements apart
    gather,   ///< one element a lane, each at its own index
  };
  Kind kind = Kind::gather;
  int64_t stride = 0;
  int64_t chunk = 1;
};

inline constexpr int64_t access_bytes = 16;  ///< the widest access of one thread
inline constexpr int64_t sector_bytes = 32;  ///< what memory hands out at once
inline constexpr int64_t line_bytes = 128;   ///< a cache line
inline constexpr int64_t warp_threads = 32;

/// Threads of a device whose loads under way hide their latency.
[[nodiscard]] constexpr int64_t threads_that_fill(const DeviceInfo& device) {
  return int64_t{device.multiprocessors} * 1024;
}

/// One access to memory: which parameter and where.
struct Reference {
  const kernel::Param* param;
  const ir::Index* index;
};

/// Every load from memory, gather and store. Of a gather, the index that it has beside its positions.
[[nodiscard]] std::vector<Reference> references(const kernel::Kernel& kernel);

/// Elements a vector access of `width` lanes may take at a time, from a first element that is a multiple of
/// `alignment` elements; 0 counts as every multiple. `all_or_one`: as many as an access holds, or one.
[[nodiscard]] int64_t chunk_of(const kernel::Param& param, int64_t alignment, int64_t width, bool all_or_one);

/// An access by `width` neighbouring points of the innermost loop, which begin at a multiple of `width`.
[[nodiscard]] LaneAccess access_along(const Reference& reference, const kernel::Kernel& kernel, int64_t width);

/// The same accesses with loop `lanes` as the innermost one, as access_along looks at them.
[[nodiscard]] kernel::Kernel lanes_last(kernel::Kernel kernel, size_t lanes);

/// A gather by such points, where `uniform` slots are one value for all of them: as access_along where its positions
/// are, else an element a lane.
[[nodiscard]] LaneAccess gather_along(const kernel::Gather& gather, const kernel::Kernel& kernel, int64_t width,
                                      const std::vector<bool>& uniform);

/// By slot: one value for all lanes of a vector along the innermost loop, given how loads reach memory and which
/// questions have one answer.
[[nodiscard]] std::vector<bool> uniform_slots(const kernel::Kernel& kernel, const std::vector<LaneAccess>& loads,
                                              const std::vector<bool>& shared, int64_t width);

/// Lanes that fill one 16-byte access of the widest element that streams through the kernel. Operands that repeat
/// (a scale per channel) do not count.
[[nodiscard]] int64_t preferred_width(const kernel::Kernel& kernel);

/// True when 32 bits do not hold some index, or the number of a point.
[[nodiscard]] bool needs_wide_index(const kernel::Kernel& kernel, int64_t points_dealt);

}  // namespace sinter::codegen
