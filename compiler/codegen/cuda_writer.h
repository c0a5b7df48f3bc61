#pragma once

#include "compiler/codegen/cuda_schedule.h"
#include "compiler/codegen/cuda_text.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// The `extern "C"` function of one kernel under a schedule; helpers it calls are not part of it.
[[nodiscard]] CudaFunction cuda_function(const kernel::Kernel& kernel, const Schedule& schedule);

}  // namespace sinter::codegen
