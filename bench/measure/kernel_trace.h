#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sinter::bench {

/// One kernel the GPU ran.
struct TracedKernel {
  std::string name;  ///< mangled as the driver reports it
  double microseconds = 0;
};

/// Every kernel the GPU ran during `call`, in order of completion, through CUPTI's activity interface; nodes of CUDA
/// Graphs are seen one by one. Nothing when CUPTI cannot be loaded or refuses (another profiler is attached).
/// Not thread-safe: one trace at a time.
[[nodiscard]] std::optional<std::vector<TracedKernel>> trace_kernels(const std::function<void()>& call);

}  // namespace sinter::bench
