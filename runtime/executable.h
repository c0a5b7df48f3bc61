#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "compiler/plan.h"
#include "compiler/support/report.h"
#include "runtime/host.h"

namespace sinter::runtime {

class Ranges;

struct ExecutableOptions {
  bool graphs = false;  ///< record a CUDA Graph and replay it (CUDA plans only)
  /// Inputs that extern calls read are taken by the graph where they lie, and not copied, until they come at another
  /// address: for arguments that are mostly weights. It is recorded at the second run, and again after one has moved.
  bool steady_inputs = false;
  /// Held while `run` adds to the report after the build ("record", notes, graphs); none where nobody else reads it.
  std::mutex* report_mutex = nullptr;
  Ranges* ranges = nullptr;  ///< told of calls and, in direct launches, of steps; null: nobody. Outlives the executable
};

/// A plan with its kernels built. Thread-safe: calls of several threads take turns where they share a recorded graph.
class Executable {
 public:
  /// Builds every kernel (in parallel, equal texts once per process). Fills kernel records and the phases "kernels"
  /// and "load" of the report. Throws InternalError (with source and log saved) when a kernel does not build.
  /// The host outlives the executable; so does the report when `graphs` is set.
  static std::unique_ptr<Executable> build(std::shared_ptr<const Plan> plan, Host& host,
                                           const ExecutableOptions& options, EntryReport& report);
  virtual ~Executable() = default;

  /// Runs Plan::once, keeping `frozen` buffers; while the caller records the stream every run computes them instead.
  /// Call once, before the first run, with inputs and state bound.
  virtual void prepare(Frame& frame) = 0;
  /// Runs one call. On entry `frame` holds inputs and state; on return it holds the outputs too.
  virtual void run(Frame& frame) = 0;
};

}  // namespace sinter::runtime
