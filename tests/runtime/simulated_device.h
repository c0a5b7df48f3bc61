#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "tests/runtime/simulated_driver.h"

/// What is behind the simulated driver's entry points.
namespace sinter::runtime::simulated {

/// Objects by handles that never come again: one that is gone is known to be gone.
template <class Handle, class Object>
class Handles {
 public:
  Handle add(Object object) {
    const auto handle = reinterpret_cast<Handle>(next_++);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  [[nodiscard]] Object* find(Handle handle) {
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool remove(Handle handle) { return objects_.erase(handle) == 1; }
  [[nodiscard]] size_t size() const { return objects_.size(); }
  /// Visits every object.
  template <class Visit>
  void each(Visit&& visit) {
    for (auto& [handle, object] : objects_) visit(object);
  }

 private:
  uintptr_t next_ = 0x100;  ///< beyond the handles that mean something to CUDA
  std::map<Handle, Object> objects_;
};

/// Work that a stream runs, or that a graph repeats.
struct KernelWork {
  CUfunction function = nullptr;
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  std::vector<uint64_t> params;
};
struct CopyWork {
  CUdeviceptr to = 0;
  CUdeviceptr from = 0;
  size_t bytes = 0;
};
using Work = std::variant<KernelWork, CopyWork>;

struct Node {
  CUgraphNode handle = nullptr;
  Work work;
};
using Nodes = std::vector<Node>;

struct Executable {
  CUgraph source = nullptr;
  Nodes nodes;
};

struct Capture {
  CUgraph graph = nullptr;
  std::thread::id thread;
  CUgraphNode last = nullptr;
  bool alive = true;  ///< not invalidated
};

struct Stream {
  unsigned long long id = 0;
  std::optional<Capture> capture;
};

/// One device. Its functions are the driver's, for a thread whose context is current and that holds `mutex`.
class Device {
 public:
  std::mutex mutex;
  Counts counts;

  void define(const std::string& name, Kernel kernel) { kernels_[name] = std::move(kernel); }
  [[nodiscard]] CUresult find_function(CUfunction* function, const char* name);

  [[nodiscard]] CUresult allocate(CUdeviceptr* memory, size_t bytes);
  [[nodiscard]] CUresult free(CUdeviceptr memory);
  [[nodiscard]] bool holds(CUdeviceptr memory, size_t bytes) const;

  [[nodiscard]] CUstream make_stream();
  [[nodiscard]] CUresult destroy_stream(CUstream stream);
  /// Null for a stream that is none. Those of all threads and of the calling one are made when asked for.
  [[nodiscard]] Stream* find(CUstream stream);
  /// For what a stream must not be asked while it is recorded: asking invalidates the recording.
  [[nodiscard]] CUresult outside_capture(CUstream stream);

  [[nodiscard]] CUresult launch(CUfunction function, const std::array<unsigned, 3>& grid,
                                const std::array<unsigned, 3>& block, CUstream stream, void** params);
  [[nodiscard]] CUresult copy(const CopyWork& work, CUstream stream);

  [[nodiscard]] CUresult begin_capture(CUstream stream);
  [[nodiscard]] CUresult end_capture(CUstream stream, CUgraph* graph);
  [[nodiscard]] CUresult status_of(CUstream stream, CUstreamCaptureStatus* status);
  [[nodiscard]] CUresult capture_info(CUstream stream, CUstreamCaptureStatus* status, CUgraph* graph,
                                      const CUgraphNode** last, size_t* count);

  [[nodiscard]] CUresult instantiate(CUgraphExec* made, CUgraph graph);
  [[nodiscard]] CUresult launch_graph(CUgraphExec exec, CUstream stream);
  [[nodiscard]] CUresult set_params(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params);
  [[nodiscard]] CUresult destroy_graph(CUgraph graph);
  [[nodiscard]] CUresult destroy_exec(CUgraphExec exec);

  Handles<CUevent, std::monostate> events;

 private:
  [[nodiscard]] std::optional<KernelWork> kernel_work(CUfunction function, const std::array<unsigned, 3>& grid,
                                                      const std::array<unsigned, 3>& block, void** params);
  /// Runs work, or adds it to the graph that the stream is recorded into.
  [[nodiscard]] CUresult give(Stream& stream, Work work);
  void run(const Work& work);

  std::map<std::string, Kernel> kernels_;
  Handles<CUfunction, Kernel> functions_;
  std::map<CUdeviceptr, size_t> memory_;
  unsigned long long next_stream_ = 1;
  Handles<CUstream, Stream> streams_;
  Stream default_stream_;
  std::map<std::thread::id, Stream> thread_streams_;
  uintptr_t next_node_ = 1;
  Handles<CUgraph, Nodes> graphs_;
  Handles<CUgraphExec, Executable> execs_;
};

}  // namespace sinter::runtime::simulated
