#pragma once

#include <cuda.h>

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/cuda/cuda_kernel.h"
#include "runtime/graph_pool.h"
#include "runtime/host.h"
#include "runtime/program.h"

namespace sinter::runtime {

/// Why an entry launches directly, e.g. "aten::multinomial cannot be recorded: CUDA error: operation not permitted when
/// stream is capturing". Everything is as before the attempt.
class NotRecorded : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What running a CUDA plan takes, whether directly or recorded. Everything outlives what is made from it.
struct CudaParts {
  const Plan& plan;
  Host& host;
  const Driver& driver;
  const std::vector<CudaKernel>& kernels;  ///< by index in the plan
  GraphPool& pool;                         ///< that graphs work in
  const GraphHolder& holder;               ///< of the graph, in the pool
};

/// An executor (see interpret) that launches and calls straight on a stream, and remembers what it did last.
class CudaExecutor {
 public:
  CudaExecutor(const CudaParts& parts, CUstream stream, LaunchOrder order = LaunchOrder::when_done)
      : parts_(parts), stream_(stream), order_(order) {}

  void launch(const Program::Launch& launch, std::span<const Program::Param> /*params*/, std::span<uint64_t> values) {
    last_ = &parts_.plan.kernels[launch.kernel].name;
    runtime::launch(parts_.driver, parts_.plan.kernels[launch.kernel], parts_.kernels[launch.kernel], values, stream_,
                    order_);
  }
  void call(Frame& frame, uint32_t call) {
    last_ = &parts_.plan.calls[call].op;
    frame.call(call);
  }
  void copy(uint64_t to, uint64_t from, int64_t bytes) {
    parts_.driver.check(parts_.driver.copy_on_device(to, from, static_cast<size_t>(bytes), stream_),
                        "cuMemcpyDtoDAsync");
  }
  /// The extern op or kernel started last; "nothing" before the first.
  [[nodiscard]] std::string last() const { return last_ == nullptr ? "nothing" : *last_; }

 private:
  const CudaParts& parts_;
  CUstream stream_;
  LaunchOrder order_;
  const std::string* last_ = nullptr;
};

/// The recording of a stream: begun when made, ended by `end`, dropped when destroyed before.
class StreamCapture {
 public:
  StreamCapture(const Driver& driver, CUstream stream);
  ~StreamCapture();
  StreamCapture(const StreamCapture&) = delete;
  StreamCapture& operator=(const StreamCapture&) = delete;

  /// The graph; the caller destroys it. Throws InternalError when the recording was invalidated.
  [[nodiscard]] CUgraph end();
  /// The one node the next work on the stream will depend on. Throws InternalError when the recording was invalidated.
  [[nodiscard]] CUgraphNode last_node() const;
  /// Throws InternalError when the recording was invalidated.
  void check_alive() const;

 private:
  const Driver& driver_;
  CUstream stream_;
  bool active_ = true;
};

/// A launch as it was recorded.
struct RecordedLaunch {
  CUgraphNode node = nullptr;
  uint32_t kernel = 0;
  std::span<const Program::Param> params;
  std::vector<uint64_t> values;
};

/// An executor that records what it is given between `begin` and `end`, keeps the graph node of every launch, and stops
/// at the first call that cannot be recorded.
class RecordingExecutor {
 public:
  RecordingExecutor(const CudaParts& parts, CUstream stream)
      : driver_(parts.driver), stream_(stream), executor_(parts, stream, LaunchOrder::early) {}

  void begin();
  /// The graph; the caller destroys it. Throws InternalError when the recording was invalidated.
  [[nodiscard]] CUgraph end() { return capture_->end(); }

  void launch(const Program::Launch& launch, std::span<const Program::Param> params, std::span<uint64_t> values);
  void call(Frame& frame, uint32_t call);
  /// Always throws NotRecorded: later calls may not need the copy.
  void copy(uint64_t to, uint64_t from, int64_t bytes);
  [[nodiscard]] std::string last() const { return executor_.last(); }
  /// Since `begin`.
  [[nodiscard]] const std::vector<RecordedLaunch>& launches() const { return launches_; }

 private:
  const Driver& driver_;
  CUstream stream_;
  CudaExecutor executor_;
  std::optional<StreamCapture> capture_;
  std::vector<RecordedLaunch> launches_;
};

}  // namespace sinter::runtime
