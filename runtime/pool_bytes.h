#pragma once

#include <cstdint>
#include <span>

#include "compiler/plan.h"
#include "runtime/program.h"

namespace sinter::runtime {

/// The most bytes that a recorded run of `program` holds at one time: results of calls, temporaries, the arena, and its
/// own copies of the inputs in `copied`. Not counted are `given` buffers, which lie elsewhere, what is below
/// `least_counted_bytes`, and what libraries take beside their results, which nobody knows before.
[[nodiscard]] int64_t pool_bytes(const Plan& plan, const Program& program, std::span<const BufferId> given,
                                 std::span<const BufferId> copied);

/// LibTorch's allocator keeps smaller blocks apart, by many in segments of their own.
constexpr int64_t least_counted_bytes = int64_t{1} << 20;

}  // namespace sinter::runtime
