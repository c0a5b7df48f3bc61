#pragma once

#include <cstdint>

#include "compiler/support/report.h"

namespace sinter {

/// What is known of what a break costs every call that runs as eager runs it.
struct BreakCost {
  int64_t launched_calls = 0;  ///< ATen calls recorded before the recording ended; each is launched on its own
  int64_t waits = 0;           ///< for a GPU: a host read waits until its work is done
};

[[nodiscard]] inline BreakCost cost_of(const EntryReport& entry, const GraphBreak& found) {
  const bool waits = found.code == BreakCode::host_read && entry.device.starts_with("cuda");
  return {entry.compiled ? 0 : entry.captured_calls, waits ? 1 : 0};
}

}  // namespace sinter
