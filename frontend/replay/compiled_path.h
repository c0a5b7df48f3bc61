#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compiler/plan.h"
#include "compiler/support/compile_observer.h"
#include "compiler/support/report.h"
#include "frontend/execute/frame_pool.h"
#include "frontend/replay/early_run.h"
#include "frontend/trace/path_graph.h"
#include "frontend/trace/tensor_table.h"
#include "runtime/executable.h"
#include "sinter/options.h"

namespace sinter::frontend {

/// A number of a step, as a call gives it.
struct LiveNumber {
  uint32_t step = 0;    ///< of the segment, counted from 0
  uint32_t number = 0;  ///< of the step
  ir::Scalar value;
};

/// How a segment is compiled.
struct PathSettings {
  const Options& options;
  const std::string& function;                 ///< its name
  std::shared_ptr<CompileObserver> observer;   ///< told of phases and kernels
  std::shared_ptr<runtime::GraphPools> pools;  ///< of the function's graphs
  /// Kernels take sizes as parameters, so that the same steps for other sizes mostly have them already.
  bool generic_sizes = false;
  /// Inputs whose contents stay as they are (Options::freeze): what depends on them alone is computed now, and kept.
  std::vector<TraceValueId> states = {};
};

/// Where an input that is no number lies in a run.
[[nodiscard]] InputMemory memory_of(const PathInput& input, const TensorTable& table);

/// A compiled segment. Thread-safe.
class CompiledPath {
 public:
  /// Its outputs are the memories that have escaped from `end`. `table` is that of a run that has matched the segment.
  /// Throws InternalError when compiling fails.
  CompiledPath(const PathNode& end, const PathSettings& settings, const TensorTable& table);

  /// True where its outputs hold every one of these memories.
  [[nodiscard]] bool gives(std::span<const TraceMemoryId> escaped) const;
  /// True where it takes exactly these numbers on every call.
  [[nodiscard]] bool takes(std::span<const LiveNumber> numbers) const;
  /// The states that lie in other memory in this run.
  [[nodiscard]] std::vector<TraceValueId> moved_states(const TensorTable& table) const;
  /// Runs it: `table` knows its inputs, `numbers` are those it takes; `give` is told what each of its outputs holds:
  /// memory of its own, of which nobody else has a reference. Throws what operators throw; `wrote` is set once memory
  /// that was there before is being written. `early` is a run of it that was begun; or null.
  void run(const TensorTable& table, std::span<const LiveNumber> numbers,
           const std::function<void(TraceMemoryId, at::Tensor)>& give, bool& wrote, EarlyRun* early = nullptr);
  /// The same of inputs in the order of `inputs`, numbers among them. Gives its outputs in their order.
  [[nodiscard]] std::vector<at::Tensor> run(std::span<const InputMemory> inputs, bool& wrote);

  [[nodiscard]] std::span<const PathInput> inputs() const { return inputs_; }
  [[nodiscard]] std::span<const TraceMemoryId> outputs() const { return escaped_; }
  /// True where a run may begin before the program has called all operators (see EarlyRun).
  [[nodiscard]] bool may_begin_early() const { return !nodes_.empty(); }
  /// True for a step of it.
  [[nodiscard]] bool holds(const PathNode& node) const {
    return node.depth <= nodes_.size() && nodes_[node.depth - 1] == &node;
  }
  /// What it reads and has taken for constant.
  [[nodiscard]] std::span<const TraceValueId> states() const { return state_ids_; }

  /// The time of its last use, as whoever keeps it counts.
  void note_use(int64_t time) { last_use_.store(time, std::memory_order_relaxed); }
  [[nodiscard]] int64_t last_use() const { return last_use_.load(std::memory_order_relaxed); }

  [[nodiscard]] bool on_gpu() const { return plan_->device.kind == ir::Device::Kind::cuda; }
  [[nodiscard]] EntryReport report() const;

 private:
  friend EarlyRun;
  [[nodiscard]] std::vector<at::Tensor> finish(EarlyRun& early, std::span<const InputMemory> inputs, bool& wrote);
  [[nodiscard]] std::vector<at::Tensor> run_in(TorchFrame& frame, size_t started, bool& wrote);
  [[nodiscard]] at::Tensor take_output(TorchFrame& frame, size_t output) const;

  std::vector<TraceMemoryId> escaped_;
  std::vector<PathInput> inputs_;
  std::vector<const PathNode*> nodes_;  ///< its steps; none where no run may begin early
  std::vector<TraceValueId> state_ids_;
  std::vector<at::Tensor> states_;  ///< by state
  std::vector<c10::IValue> opaques_;
  mutable std::mutex mutex_;  ///< of the record
  EntryReport record_;
  std::shared_ptr<const Plan> plan_;
  std::vector<bool> copied_;  ///< by output: it does not have memory of its own
  std::vector<Elements> elements_;
  const std::shared_ptr<CompileObserver> observer_;
  std::unique_ptr<TorchHost> host_;
  std::unique_ptr<runtime::Executable> executable_;
  FramePool frames_;
  std::atomic<int64_t> runs_{0}, early_{0}, last_use_{0};
};

}  // namespace sinter::frontend
