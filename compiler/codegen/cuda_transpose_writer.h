#pragma once

#include "compiler/codegen/cuda_text.h"
#include "compiler/codegen/cuda_transpose_schedule.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// The `extern "C"` function of a kernel that transposes through shared memory; helpers it calls are not part of it.
[[nodiscard]] CudaFunction cuda_transpose_function(const kernel::Kernel& kernel, const TransposeSchedule& schedule);

}  // namespace sinter::codegen
