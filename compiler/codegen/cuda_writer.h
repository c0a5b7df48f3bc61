#pragma once

#include <string>
#include <vector>

#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_schedule.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// The `extern "C"` function of one kernel under a schedule; helpers it calls are not part of it.
[[nodiscard]] std::string cuda_function(const kernel::Kernel& kernel, const Schedule& schedule);

}  // namespace sinter::codegen
