#pragma once

#include "compiler/codegen/cuda_column_schedule.h"
#include "compiler/codegen/cuda_text.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// The `extern "C"` function of a kernel that goes once through rows which lie side by side; helpers it calls are not
/// part of it. Threads go through vectors of columns, then one thread a column joins what they have and does the rest.
[[nodiscard]] CudaFunction cuda_column_function(const kernel::Kernel& kernel, const ColumnSchedule& schedule);

}  // namespace sinter::codegen
