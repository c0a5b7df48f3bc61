#pragma once

#include <string>
#include <vector>

#include "compiler/codegen/cuda_expression.h"
#include "compiler/codegen/cuda_schedule.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// A function, and what its last parameters, n0, n1, ..., are to hold.
struct CudaFunction {
  std::string text;
  std::vector<int64_t> sizes;
};

/// The `extern "C"` function of one kernel under a schedule; helpers it calls are not part of it.
[[nodiscard]] CudaFunction cuda_function(const kernel::Kernel& kernel, const Schedule& schedule);

}  // namespace sinter::codegen
