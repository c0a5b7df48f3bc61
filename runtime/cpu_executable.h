#pragma once

#include <memory>

#include "runtime/executable.h"

namespace sinter::runtime {

/// Executable::build for plans of the LLVM back end.
[[nodiscard]] std::unique_ptr<Executable> build_cpu_executable(std::shared_ptr<const Plan> plan, Host& host,
                                                               const ExecutableOptions& options, EntryReport& report);

}  // namespace sinter::runtime
