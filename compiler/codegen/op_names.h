#pragma once

#include <string>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// The operators that a kernel computes, in its order, casts left out: for reports.
[[nodiscard]] std::vector<std::string> op_names(const kernel::Kernel& kernel);

}  // namespace sinter::codegen
