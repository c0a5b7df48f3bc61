#pragma once

#include <cstdint>
#include <vector>

#include "compiler/plan.h"

namespace sinter::runtime {

/// The buffer whose memory `buffer` lies in, through views and in-place takeovers, and where in it. A root is of any
/// kind but `view` and `in_place`.
struct Root {
  BufferId buffer;
  int64_t bytes = 0;  ///< from the first element of the root to the first of the buffer
};
[[nodiscard]] Root root_of(const Plan& plan, BufferId buffer);

/// True for roots whose numbers, where kernels take them by value, the host reads anew before every run.
[[nodiscard]] constexpr bool holds_host_numbers(BufferKind root) {
  return root == BufferKind::input || root == BufferKind::state;
}

/// Bytes from the first to one past the last element; 0 for dtypes kernels do not touch.
[[nodiscard]] int64_t span_bytes(const ir::Type& type);

/// Calls `visit(BufferId)` for every buffer an extern call reads.
template <class Visit>
void for_each_argument(const ExternCall& call, Visit&& visit) {
  for (const ir::Arg& arg : call.args) {
    ir::for_each_value(arg, [&](ir::ValueId id) { visit(BufferId{id.index}); });
  }
}

/// Steps of a plan made flat: every address a launch needs is a slot of a small table plus a constant, so that running
/// them allocates nothing and looks nothing up.
struct Program {
  struct Param {
    KernelArg::Pass pass = KernelArg::Pass::pointer;
    uint32_t slot = 0;   ///< pointers: index into the table of addresses
    int64_t offset = 0;  ///< pointers: bytes after it; sizes: the number
    BufferId buffer;     ///< as the plan names it; none for sizes
    uint64_t clear = 0;  ///< pointers: bits of the address that the kernel needs to be 0
    bool written = false;
    int64_t bytes = 0;  ///< pointers: from the first element to the end of the last
  };
  struct Launch {
    uint32_t kernel = 0;  ///< index into Plan::kernels
    uint32_t first_param = 0;
    uint32_t param_count = 0;
  };
  struct Instruction {
    enum class Kind : uint8_t { launch, call, allocate, bind, release, fetch, begin_writes };
    Kind kind = Kind::launch;
    uint32_t index = 0;  ///< into `launches` or Plan::calls, or a buffer
    uint32_t slot = 0;   ///< fetch: where the buffer's address goes
  };

  static constexpr uint32_t arena_slot = 0;

  std::vector<Instruction> instructions;
  std::vector<Launch> launches;
  std::vector<Param> params;
  std::vector<BufferId> slots;  ///< the root behind each slot; the arena's has none
  uint32_t most_params = 0;     ///< of one launch
  bool uses_arena = false;
};

/// Flattens `steps`. Launches over no points are dropped, and so is the allocation of buffers in `given`, which the
/// frame holds already.
[[nodiscard]] Program flatten(const Plan& plan, const std::vector<Step>& steps,
                              const std::vector<BufferId>& given = {});

/// Buffers to bind, in order, so that a frame holding the roots holds `buffers` too.
[[nodiscard]] std::vector<BufferId> binds_for(const Plan& plan, const std::vector<BufferId>& buffers);

}  // namespace sinter::runtime
