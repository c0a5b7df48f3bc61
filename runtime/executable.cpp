#include "runtime/executable.h"

#include "runtime/cpu_executable.h"
#include "runtime/cuda_executable.h"

namespace sinter::runtime {

std::unique_ptr<Executable> Executable::build(std::shared_ptr<const Plan> plan, Host& host,
                                              const ExecutableOptions& options, EntryReport& report) {
  if (plan->backend == Backend::cuda) return build_cuda_executable(std::move(plan), host, options, report);
  return build_cpu_executable(std::move(plan), host, options, report);
}

}  // namespace sinter::runtime
