#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <vector>

#include "runtime/cuda/graph_recorder.h"
#include "runtime/cuda/graph_turn.h"
#include "runtime/graph_layout.h"
#include "runtime/graph_parts.h"
#include "runtime/host.h"
#include "runtime/interpret.h"
#include "runtime/program.h"

namespace sinter::runtime {

/// One plan recorded as a CUDA Graph, or as several that run one after another. Used by one thread at a time, with the
/// device's primary context current.
class CudaGraph {
 public:
  /// Runs the plan once on a side stream to warm up the libraries, then records it there, with memory of a private
  /// pool. Nothing of the recording runs. `frame` is that of a call, `kept` holds the frozen buffers (or is null),
  /// `stream` is the caller's; it waits for the warm-up. Throws NotRecorded when an extern call cannot be recorded.
  [[nodiscard]] static std::unique_ptr<CudaGraph> record(const CudaParts& parts, const GraphLayout& layout,
                                                         const Program& steps, const Arrivals& arrivals, Frame& frame,
                                                         const Frame* kept, CUstream stream);
  /// Waits for the device's last replay, then gives the pool back.
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  [[nodiscard]] size_t parts() const { return graphs_.size(); }
  /// When a part may be started (see Arrivals).
  [[nodiscard]] uint32_t due(size_t part) const { return graphs_[part].due; }
  /// True where the memory that it works in has become too small for other graphs of the function, and was made anew.
  [[nodiscard]] bool is_old() const { return !parts_.pool.is_current(*memory_); }
  /// True where no earlier work keeps a graph of this device from beginning at once.
  [[nodiscard]] bool may_begin() { return turn_.is_over(); }
  /// Starts the next part of a call: re-points what moved, copies in, replays on `stream`. What arrived by then is
  /// bound in `frame`. Where another graph has worked in the same memory since, the parts before run once more.
  void start(size_t part, Frame& frame, CUstream stream);
  /// Runs one call from this part on; the parts before have been started. Copies out, and binds the outputs in `frame`.
  void replay(size_t first_part, Frame& frame, CUstream stream);

 private:
  /// A re-pointed parameter of a recorded launch.
  struct MovingParam {
    uint32_t position = 0;  ///< among the launch's parameters
    KernelArg::Pass pass = KernelArg::Pass::pointer;
    BufferId buffer;     ///< pointers: the root; scalars: the buffer to read
    uint32_t index = 0;  ///< pointers: into `addresses_`
    int64_t offset = 0;  ///< pointers: bytes after it
  };
  struct Node {
    CUgraphNode handle = nullptr;
    uint32_t kernel = 0;
    std::vector<uint64_t> values;  ///< as the instantiated graph has them
    std::vector<MovingParam> moving;
    bool stale = false;  ///< the last attempt to set `values` failed
  };
  /// Memory of the graph's own that a tensor is copied to or from.
  struct Copy {
    BufferId buffer;
    CUdeviceptr address = 0;
    size_t bytes = 0;
  };

  CudaGraph(const CudaParts& parts, const GraphLayout& layout);
  /// One of the graphs.
  struct Part {
    uint32_t due = 0;
    std::vector<Node> nodes;       ///< only those with a moving parameter
    std::vector<uint32_t> moving;  ///< that they have: indices into `moving_`
    std::vector<Copy> copies_in;
    std::vector<BufferId> scalar_binds;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
  };
  void warm_up(const Program& steps, Frame& frame, const Frame* kept, CUstream stream);
  /// A library that failed while it was recorded may report that by its next call as well: cuSOLVER has a CUDA runtime,
  /// and so a last error, of its own. Calls it until it works again, with what nobody sees.
  void settle_libraries(const Program& steps, Frame& frame, const Frame* kept, CUstream stream);
  /// Gives a frame a copy of what a buffer holds, e.g. of what the warm-up writes, which nobody sees.
  void own(Frame& frame, BufferId buffer, CUstream stream) const;
  /// `bytes` is what `steps` hold at one time.
  void capture(const Program& steps, int64_t bytes, const Arrivals& arrivals, Frame& frame, const Frame* kept);
  void capture_part(RecordingExecutor& executor, Interpretation<RecordingExecutor>& steps, size_t end, Part& part);
  void keep(const RecordedLaunch& launch, Part& part);
  [[nodiscard]] Part& first_with(BufferId input, const Arrivals& arrivals);
  [[nodiscard]] Copy copy_in_of(const Frame& inside, BufferId input) const;
  [[nodiscard]] Copy copy_out_of(const Frame& inside, BufferId root) const;
  void repoint(Part& part, Frame& frame);
  void launch(const Part& part, Frame& frame, CUstream stream);
  void set(const Part& part, Node& node);
  void copy_out(Frame& frame, CUstream stream);
  /// What comes behind the last part: copies, and the closing calls.
  void finish(Frame& frame, CUstream stream);
  void run_closing_call(uint32_t call, Frame& frame, CUstream stream);
  [[nodiscard]] uint64_t value_of(const MovingParam& param, const Frame& frame) const;

  const CudaParts& parts_;
  const GraphLayout& layout_;
  std::vector<BufferId> moving_;     ///< moving inputs, then moving outputs
  std::vector<uint64_t> addresses_;  ///< of `moving_`, in this call
  std::vector<Part> graphs_;
  std::vector<Copy> copies_back_;  ///< of those copied in: inputs that the graph writes
  std::vector<Copy> copies_out_;
  std::vector<Copy> lent_;              ///< to the calls behind the graph
  const Frame* kept_ = nullptr;         ///< holds the frozen buffers
  std::unique_ptr<Host::Draws> draws_;  ///< null where no call is random
  std::optional<uint64_t> memory_;      ///< its pool's name
  GraphTurn& turn_;
};

}  // namespace sinter::runtime
