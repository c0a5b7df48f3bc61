#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/MemPool.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "frontend/torch/cuda.h"
#include "frontend/torch/libtorch_version.h"
#include "runtime/cuda/driver.h"

namespace sinter::frontend::cuda {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

/// The streams that recordings run on: one a device, made for it and never destroyed. Those of LibTorch's pool go round
/// among everybody who asks, and what such a stream allocates while it is recorded would land in the graph's memory.
/// Recordings of a process take turns, so that what LibTorch's libraries keep for a stream exists once the warm-up has
/// run there.
class RecordingStreams {
 public:
  static RecordingStreams& get() {
    static auto& instance = *new RecordingStreams();
    return instance;
  }

  [[nodiscard]] std::unique_lock<std::mutex> take_turn() { return std::unique_lock(turn_); }

  /// In one's turn.
  [[nodiscard]] c10::cuda::CUDAStream on(c10::DeviceIndex device) {
    const auto found = streams_.find(device);
    return found != streams_.end() ? found->second : streams_.emplace(device, make(device)).first->second;
  }

  /// Takes over the workspaces that cuBLAS handles were given for a stream: recorded graphs work in them, and LibTorch
  /// gives its own back when the program asks (at::cuda::clearCublasWorkspaces). It goes on using them. In one's turn.
  void keep_workspaces(const c10::cuda::CUDAStream& stream) {
    for (at::cuda::WorkspaceMapWithMutex* all :
         {&at::cuda::cublas_handle_stream_to_workspace(), &at::cuda::cublaslt_handle_stream_to_workspace()}) {
      const std::unique_lock lock(all->mutex);
      for (auto& [key, kept] : all->map) {
        c10::DataPtr& memory = memory_of_workspace(kept);
        const bool owned = memory.get_context() != nullptr;
        if (std::get<1>(key) != stream.stream() || !owned) continue;
        c10::DataPtr borrowed(memory.get(), memory.device());
        workspaces_.push_back(std::exchange(memory, std::move(borrowed)));
      }
    }
  }

 private:
  static c10::cuda::CUDAStream make(c10::DeviceIndex device) {
    const runtime::Driver& driver = runtime::Driver::get();
    const runtime::ContextScope scope(driver, driver.context_of(device));
    CUstream stream = nullptr;
    driver.check(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return c10::cuda::getStreamFromExternal(stream, device);
  }

  std::mutex turn_;
  std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams_;
  std::vector<c10::DataPtr> workspaces_;  ///< until the process ends: nobody counts the graphs that work in them
};

constexpr int64_t least_given_back = int64_t{16} << 20;

/// Gives memory that LibTorch's allocator keeps for later back to the driver. It keeps blocks by stream and pool, so
/// that what eager calls, the warm-up and the recording need of it would else be held three times.
void give_back_cached(c10::DeviceIndex device) {
  try {
    const auto stats = allocator::getDeviceStats(device);
    constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    if (stats.reserved_bytes[all].current - stats.allocated_bytes[all].current < least_given_back) return;
    allocator::emptyCache();
  } catch (const c10::Error&) {  // an allocator that keeps no count, or somebody is recording a graph
  }
}

class TorchRecording final : public runtime::Host::Recording {
 public:
  TorchRecording(c10::DeviceIndex device, const std::optional<runtime::Host::PoolRequest>& request)
      : turn_(RecordingStreams::get().take_turn()), device_(device), guard_(RecordingStreams::get().on(device)) {
    give_back_cached(device_);
    if (!request) return;
    pool_ = request->id ? c10::cuda::MempoolId_t{*request->id, 0}
                        : at::cuda::MemPool::graph_pool_handle(/*is_user_created=*/false);
    const auto stream = guard_.current_stream().stream();
    allocator::beginAllocateToPool(device_, pool_, [stream](cudaStream_t other) { return other == stream; });
    if (!request->id && request->bytes >= least_given_back) add_block(static_cast<size_t>(request->bytes));
  }
  TorchRecording(const TorchRecording&) = delete;
  TorchRecording& operator=(const TorchRecording&) = delete;
  ~TorchRecording() override {
    RecordingStreams::get().keep_workspaces(guard_.current_stream());
    if (pool() != 0) allocator::endAllocateToPool(device_, pool_);
  }

  [[nodiscard]] void* stream() const override { return guard_.current_stream().stream(); }
  [[nodiscard]] uint64_t pool() const override { return pool_.first; }

 private:
  /// Where there is no room for it, the recording does with what it can get.
  void add_block(size_t bytes) const {
    try {
      allocator::raw_delete(allocator::raw_alloc_with_stream(bytes, guard_.current_stream().stream()));
    } catch (const c10::Error&) {
    }
  }

  std::unique_lock<std::mutex> turn_;
  c10::DeviceIndex device_;
  c10::cuda::CUDAStreamGuard guard_;
  c10::cuda::MempoolId_t pool_{0, 0};
};

}  // namespace

void make_room(c10::DeviceIndex device, int64_t bytes) {
  if (bytes < least_given_back) return;
  size_t largest = 1;  // 0 asks for what the device has free
  try {
    allocator::cacheInfo(device, &largest);
  } catch (const c10::Error&) {  // an allocator that keeps no count
    return;
  }
  if (largest < static_cast<size_t>(bytes)) give_back_cached(device);
}

std::unique_ptr<runtime::Host::Recording> record(c10::DeviceIndex device,
                                                 const std::optional<runtime::Host::PoolRequest>& request) {
  return std::make_unique<TorchRecording>(device, request);
}

void release_pool(c10::DeviceIndex device, uint64_t pool) {
  allocator::releasePool(device, {pool, 0});
  try {
    allocator::emptyCache({pool, 0});  // where that was its last graph
  } catch (const c10::Error&) {        // somebody is recording a graph; the next time that LibTorch frees will do
  }
}

}  // namespace sinter::frontend::cuda
