#pragma once

#include "compiler/codegen/cuda_row_schedule.h"
#include "compiler/codegen/cuda_text.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// The `extern "C"` function of a kernel with reduced loops; helpers it calls are not part of it. A row is gone through
/// in passes: each ends with the reductions whose operands are known by then, the last one stores.
[[nodiscard]] CudaFunction cuda_row_function(const kernel::Kernel& kernel, const RowSchedule& schedule);

}  // namespace sinter::codegen
