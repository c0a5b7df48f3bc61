#pragma once

#include <array>
#include <optional>
#include <string>

#include "tests/emulator/machine.h"

/// What lanes of a warp do together, as CUDA defines it.
namespace sinter::test {

constexpr unsigned lanes_per_warp = 32;

/// By lane; empty where a lane has made no call.
using WarpCalls = std::array<std::optional<WarpCall>, lanes_per_warp>;

/// "__shfl_xor_sync (line 7, mask 0xffffffff)"
[[nodiscard]] std::string describe(const WarpCall& call);

/// What is wrong with a lane's call whatever other lanes do; empty when nothing is.
[[nodiscard]] std::string fault_of(const WarpCall& call, unsigned lane);

/// Whether two calls can be parts of one operation.
[[nodiscard]] bool same_operation(const WarpCall& a, const WarpCall& b);

/// The lane whose value a lane's shuffle gives.
[[nodiscard]] unsigned source_lane(const WarpCall& call, unsigned lane);

/// What a lane's call gives, when all lanes of its mask have called.
[[nodiscard]] uint64_t result_of(const WarpCalls& calls, unsigned lane);

}  // namespace sinter::test
