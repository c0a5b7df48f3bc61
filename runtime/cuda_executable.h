#pragma once

#include <memory>

#include "runtime/executable.h"

namespace sinter::runtime {

/// Executable::build for plans of the CUDA back end. Throws InternalError where there is no driver.
[[nodiscard]] std::unique_ptr<Executable> build_cuda_executable(std::shared_ptr<const Plan> plan, Host& host,
                                                                const ExecutableOptions& options, EntryReport& report);

}  // namespace sinter::runtime
