#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "compiler/plan.h"
#include "compiler/support/compile_observer.h"
#include "compiler/support/report.h"
#include "runtime/graph_parts.h"
#include "runtime/host.h"

namespace sinter::runtime {

class GraphPools;
class Ranges;

struct ExecutableOptions {
  bool graphs = false;  ///< record a CUDA Graph and replay it (CUDA plans only)
  /// Inputs that extern calls read are taken by the graph where they lie, and not copied, until they come at another
  /// address: for arguments that are mostly weights. It is recorded at the second run, and again after one has moved.
  bool steady_inputs = false;
  /// Held while `run` adds to the report after the build ("record", notes, graphs); none where nobody else reads it.
  std::mutex* report_mutex = nullptr;
  /// Whose memory the graph works in; null: its own.
  std::shared_ptr<GraphPools> pools = nullptr;
  /// Where inputs come one after the other, recorded runs may be started before all are there.
  Arrivals arrivals = {};
  Ranges* ranges = nullptr;  ///< told of calls and, in direct launches, of steps; null: nobody. Outlives the executable
  /// Told of kernels and phases, of "record" when a run records a graph; null: nobody. Outlives the executable.
  CompileObserver* observer = nullptr;
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
  /// Runs one call. On entry `frame` holds inputs and state; on return it holds the outputs too. `started` parts of the
  /// call have been started with this frame; they count for nothing where the rest cannot follow them.
  virtual void run(Frame& frame, size_t started = 0) = 0;

  /// When a part of a run, counted from 0, may be started before `run` (see Arrivals); none where it, and all that
  /// follow, come with `run`.
  [[nodiscard]] virtual std::optional<uint32_t> due(size_t /*part*/) { return std::nullopt; }
  /// Starts a part: `frame` holds state and what has arrived by its time. From the first part until `run` or `drop`
  /// calls of others do without the recorded graph. False where nothing was started, and `run` is to do it all.
  [[nodiscard]] virtual bool start(size_t /*part*/, Frame& /*frame*/) { return false; }
  /// Ends a call that was started, without `run`: what was started is done in vain.
  virtual void drop() {}
};

}  // namespace sinter::runtime
