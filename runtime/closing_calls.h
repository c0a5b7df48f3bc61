#pragma once

#include <cstdint>
#include <vector>

#include "compiler/plan.h"

namespace sinter::runtime {

/// Results of fewer bytes are copied out of a graph: that takes the device less time than a call takes the host.
inline constexpr int64_t least_closing_bytes = int64_t{8} << 20;

/// Calls at the end of a plan that are better run behind its graph, on the caller's stream, e.g. the product that gives
/// a language model's logits: LibTorch gives their results fresh memory, where a graph would keep memory for them and
/// copy them out of it on every replay.
struct ClosingCalls {
  std::vector<uint32_t> calls;     ///< of Plan::calls, in order
  std::vector<BufferId> operands;  ///< what they read

  [[nodiscard]] bool contains(uint32_t call) const;
};

/// Calls that nothing but binds and releases follows, that draw and write nothing, and all of whose results are outputs
/// of the plan that are large. LibTorch's own alone: they run while the device's turn is held (GraphTurn), which an
/// operator of the user's that calls a compiled function would wait for. None where no work would be left for a graph.
[[nodiscard]] ClosingCalls closing_calls(const Plan& plan);

}  // namespace sinter::runtime
