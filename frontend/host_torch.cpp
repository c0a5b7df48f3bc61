#include "frontend/host_torch.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/MemPool.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>

#include "compiler/support/errors.h"
#include "frontend/convert.h"
#include "frontend/graph_generators.h"
#include "runtime/llvm_jit.h"

namespace sinter::frontend {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

c10::DeviceIndex index_of(ir::Device device) { return static_cast<c10::DeviceIndex>(device.index); }

/// Recordings of a process take turns: they share one side stream a device, so that the workspaces LibTorch keeps for
/// a stream exist once the warm-up has run there.
struct SideStreams {
  std::mutex turn;
  std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;

  static SideStreams& get() {
    static SideStreams instance;
    return instance;
  }

  c10::cuda::CUDAStream on(c10::DeviceIndex device) {
    const auto found = streams.find(device);
    if (found != streams.end()) return found->second;
    return streams.emplace(device, c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device)).first->second;
  }
};

class TorchRecording final : public runtime::Host::Recording {
 public:
  TorchRecording(c10::DeviceIndex device, bool use_pool)
      : turn_(SideStreams::get().turn), device_(device), guard_(SideStreams::get().on(device)) {
    if (!use_pool) return;
    pool_ = at::cuda::MemPool::graph_pool_handle(/*is_user_created=*/false);
    const auto stream = guard_.current_stream().stream();
    allocator::beginAllocateToPool(device_, pool_, [stream](cudaStream_t other) { return other == stream; });
  }
  TorchRecording(const TorchRecording&) = delete;
  TorchRecording& operator=(const TorchRecording&) = delete;
  ~TorchRecording() override {
    if (pool() != 0) allocator::endAllocateToPool(device_, pool_);
  }

  [[nodiscard]] void* stream() const override { return guard_.current_stream().stream(); }
  [[nodiscard]] uint64_t pool() const override { return pool_.first; }

 private:
  std::unique_lock<std::mutex> turn_;
  c10::DeviceIndex device_;
  c10::cuda::CUDAStreamGuard guard_;
  c10::cuda::MempoolId_t pool_{0, 0};
};

}  // namespace

TorchHost::TorchHost(std::shared_ptr<const Plan> plan, const std::vector<c10::IValue>& opaques)
    : layout_(std::make_shared<const FrameLayout>(std::move(plan), opaques)) {
  for (const c10::IValue& opaque : opaques) {
    if (opaque.isGenerator()) generators_.push_back(opaque.toGenerator());
  }
}

std::unique_ptr<TorchFrame> TorchHost::make_torch_frame() const { return std::make_unique<TorchFrame>(layout_); }

std::unique_ptr<runtime::Frame> TorchHost::make_frame(const Plan& plan) {
  if (&plan != layout_->plan.get()) throw InternalError("host", "a frame was asked for a plan of another entry");
  return make_torch_frame();
}

void* TorchHost::current_stream(ir::Device device) {
  return c10::cuda::getCurrentCUDAStream(index_of(device)).stream();
}

void TorchHost::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  at::parallel_for(0, count, grain, body);
}

std::unique_ptr<runtime::Host::Recording> TorchHost::record(ir::Device device, bool use_pool) {
  return std::make_unique<TorchRecording>(index_of(device), use_pool);
}

void TorchHost::release_pool(ir::Device device, uint64_t pool) { allocator::releasePool(index_of(device), {pool, 0}); }

std::unique_ptr<runtime::Host::Draws> TorchHost::draws(ir::Device device) {
  return make_graph_generators(device.index, generators_);
}

std::optional<c10::Device> device_to_set(const Plan& plan) {
  if (plan.backend != Backend::cuda) return std::nullopt;
  return device_of(plan.device);
}

DeviceInfo device_info(ir::Device device) {
  if (device.kind == ir::Device::Kind::cuda) {
    const auto* properties = at::cuda::getDeviceProperties(index_of(device));
    // cuDNN's tensor-core convolutions work channels-last; on f32 operands they are TF32.
    const bool cudnn = at::globalContext().userEnabledCuDNN() && properties->major >= 7;
    return {.backend = Backend::cuda,
            .sm = properties->major * 10 + properties->minor,
            .multiprocessors = properties->multiProcessorCount,
            .channels_last_half = cudnn,
            .channels_last_float = cudnn && properties->major >= 8 && at::globalContext().allowTF32CuDNN()};
  }
  return {.backend = Backend::llvm, .vector_bits = runtime::host_vector_bits()};
}

}  // namespace sinter::frontend
