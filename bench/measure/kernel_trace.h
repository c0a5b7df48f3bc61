#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sinter::bench {

/// One kernel the GPU ran.
struct TracedKernel {
  std::string name;         ///< mangled as the driver reports it
  double microseconds = 0;  ///< in which no kernel before it was still running (runtime/busy_time.h)
  std::string op;    ///< the ATen operator that launched it, "aten::add.Tensor"; empty: none did, or not asked for
  int64_t call = 0;  ///< number of that call among the traced calls of the same operator
};

/// Every kernel the GPU ran during `call`, in order of completion, through CUPTI's activity interface; nodes of CUDA
/// Graphs are seen one by one. Nothing when CUPTI cannot be loaded or refuses (another profiler is attached).
/// Not thread-safe: one trace at a time.
[[nodiscard]] std::optional<std::vector<TracedKernel>> trace_kernels(const std::function<void()>& call);

/// The same with copies and fills of memory ("memcpy device to device", "memset"), and with the ATen operator behind
/// each: LibTorch tells of the operators that are called meanwhile (not of those that operators call), CUPTI's external
/// correlation ties launches to them. Kernels of a replayed CUDA Graph have none: attribute_like finds theirs.
[[nodiscard]] std::optional<std::vector<TracedKernel>> trace_operator_kernels(const std::function<void()>& call);

}  // namespace sinter::bench
