#pragma once

#include "compiler/codegen/cuda_short_row_schedule.h"
#include "compiler/codegen/cuda_text.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// The `extern "C"` function of a kernel with short rows: straight through the body, each value computed once and
/// stored where it is known.
[[nodiscard]] CudaFunction cuda_short_row_function(const kernel::Kernel& kernel, const ShortRowSchedule& schedule);

}  // namespace sinter::codegen
