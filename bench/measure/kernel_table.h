#pragma once

#include <string>
#include <vector>

#include "bench/measure/kernel_trace.h"
#include "compiler/support/report.h"

namespace sinter::bench {

/// Who a kernel on the GPU belongs to.
enum class KernelOrigin : uint8_t {
  generated,  ///< Sinter wrote it
  library,    ///< an ATen operator launched it
  unknown,    ///< neither can be told
};

/// All runs of one kernel within one call that belong together.
struct KernelTableRow {
  std::string name;  ///< readable_symbol
  KernelOrigin origin = KernelOrigin::unknown;
  std::vector<std::string> ops;      ///< of a generated kernel; or the one ATen operator that launched it
  std::vector<std::string> modules;  ///< paths, each once; of all generated kernels of that name; empty: not known
  int64_t count = 0;
  double microseconds = 0;  ///< of all runs together
};

/// Gives kernels of a replayed CUDA Graph the operators of `direct`, a trace of the same steps run one by one: kernels
/// of equal names are matched in order, as many as can be. A graph's copies and kernels that a library chose
/// differently stay without one.
void attribute_like(const std::vector<TracedKernel>& direct, std::vector<TracedKernel>& kernels);

/// The kernels of one call, those that take most time first. `entry` is the report on what was called: it knows the
/// generated kernels, and the module of every library call.
[[nodiscard]] std::vector<KernelTableRow> kernel_table(const std::vector<TracedKernel>& kernels,
                                                       const EntryReport& entry);

/// "generated", "library" or "unknown".
[[nodiscard]] std::string to_string(KernelOrigin origin);

/// The table for people, with a line of totals below.
[[nodiscard]] std::string to_text(const std::vector<KernelTableRow>& rows);

}  // namespace sinter::bench
