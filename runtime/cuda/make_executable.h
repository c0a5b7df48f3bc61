#pragma once

#include <memory>
#include <vector>

#include "runtime/cuda/cuda_kernel.h"
#include "runtime/executable.h"

namespace sinter::runtime {

/// The executable of a plan whose kernels are loaded already: by index in the plan, those that are not launched left
/// empty. Lifetimes are those of Executable::build.
[[nodiscard]] std::unique_ptr<Executable> make_cuda_executable(std::shared_ptr<const Plan> plan, Host& host,
                                                               const Driver& driver, std::vector<CudaKernel> kernels,
                                                               const ExecutableOptions& options, EntryReport& report);

}  // namespace sinter::runtime
