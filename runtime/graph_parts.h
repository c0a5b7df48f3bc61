#pragma once

#include <cstdint>
#include <vector>

#include "compiler/plan.h"
#include "runtime/program.h"

namespace sinter::runtime {

/// When a run may do what, where its inputs come one after the other: by the steps of the program that has called for
/// it by then. Empty where all is there before a run begins.
struct Arrivals {
  std::vector<uint32_t> inputs;  ///< by input of the plan: the program has taken it
  std::vector<uint32_t> calls;   ///< by Plan::calls: not before, even if its operands are there; 0 for most
  uint32_t end = 0;              ///< of the program

  [[nodiscard]] bool empty() const { return inputs.empty(); }
};

/// Programs of fewer steps are one part.
constexpr size_t fewest_steps_for_parts = 40;

/// A stretch of a program's instructions that is recorded as a graph of its own.
struct GraphPart {
  size_t end = 0;    ///< one past its last instruction
  uint32_t due = 0;  ///< it may be started from this step on; the last part's is Arrivals::end
};

/// Cuts a program so that a device can begin while the host is still on its way: at instructions that are the first to
/// need what comes later than certain shares of the way. One part where that does not pay: few launches or steps; and
/// where a run writes memory that was there before, which no run may do in vain.
[[nodiscard]] std::vector<GraphPart> cut_in_parts(const Plan& plan, const Program& program, const Arrivals& arrivals);

}  // namespace sinter::runtime
