#pragma once

#include <optional>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// What a join of tensors in memory reads: at every point exactly one of the loads is done.
struct JoinedLoads {
  Slot result = 0;            ///< the choice that gives what was read
  std::vector<Slot> loads;    ///< by operand of the join, each under an `Inside` of its own
  std::vector<Slot> choices;  ///< the other choices on the way to `result`; nothing else reads them
};

/// All joins of a kernel whose operands are nothing but loads of one dtype that nothing else reads. A writer may choose
/// an address for them and load once.
[[nodiscard]] std::vector<JoinedLoads> joined_loads(const Kernel& kernel);

}  // namespace sinter::kernel
