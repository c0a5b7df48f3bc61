#include "tests/runtime/gpu_host.h"

#include <stdexcept>

namespace sinter::runtime::fake {
namespace {

constexpr size_t slab_bytes = size_t{256} << 20;
constexpr size_t block_bytes = 512;

thread_local CUstream current = nullptr;
thread_local uint64_t current_pool = 0;

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

class GpuRecording final : public runtime::Host::Recording {
 public:
  GpuRecording(CUstream side, uint64_t pool) : before_(current), pool_(pool) {
    current = side;
    current_pool = pool;
  }
  ~GpuRecording() override {
    current = before_;
    current_pool = 0;
  }
  GpuRecording(const GpuRecording&) = delete;
  GpuRecording& operator=(const GpuRecording&) = delete;
  [[nodiscard]] void* stream() const override { return current; }
  [[nodiscard]] uint64_t pool() const override { return pool_; }

 private:
  CUstream before_;
  uint64_t pool_;
};

}  // namespace

DeviceMemory::DeviceMemory(const Driver& driver, Freed freed) : driver_(driver), freed_(freed) {
  driver_.check(driver_.mem_alloc(&start_, slab_bytes), "cuMemAlloc");
}

DeviceMemory::~DeviceMemory() { driver_.mem_free(start_); }

std::shared_ptr<void> DeviceMemory::allocate(int64_t bytes) {
  const size_t size = (static_cast<size_t>(bytes) / block_bytes + 1) * block_bytes;
  const auto key = std::make_tuple(current_pool, current, size);
  std::lock_guard lock(mutex_);
  CUdeviceptr block = start_ + used_;
  if (auto& blocks = free_[key]; !blocks.empty()) {
    block = blocks.back();
    blocks.pop_back();
  } else if (auto& returned = returned_[size]; !returned.empty()) {
    block = returned.back();
    returned.pop_back();
  } else if ((used_ += size) > slab_bytes) {
    throw std::runtime_error("out of device memory");
  }
  return {reinterpret_cast<void*>(block), [this, key](void* memory) {
            std::lock_guard free_lock(mutex_);
            if (freed_ != nullptr) freed_(memory, std::get<2>(key));
            free_[key].push_back(address(memory));
          }};
}

void DeviceMemory::release(uint64_t pool) {
  std::lock_guard lock(mutex_);
  for (auto& [key, blocks] : free_) {
    if (std::get<0>(key) != pool) continue;
    const size_t size = std::get<2>(key);
    for (const CUdeviceptr block : std::exchange(blocks, {})) {
      if (freed_ != nullptr) freed_(reinterpret_cast<void*>(block), size);
      returned_[size].push_back(block);
    }
  }
}

GpuHost::GpuHost(const Driver& driver, Freed freed) : GpuHost(driver, std::make_shared<DeviceMemory>(driver, freed)) {}

GpuHost::GpuHost(const Driver& driver, const std::shared_ptr<DeviceMemory>& memory)
    : Host(memory), driver_(driver), memory_(memory) {
  side_ = make_stream();
  use(make_stream());
}

GpuHost::~GpuHost() {
  use(nullptr);
  for (CUstream stream : streams_) {
    driver_.stream_synchronize(stream);
    driver_.stream_destroy(stream);
  }
}

void* GpuHost::current_stream(ir::Device) { return current; }

std::unique_ptr<Host::Recording> GpuHost::record(ir::Device, const std::optional<PoolRequest>& request) {
  if (!request) return std::make_unique<GpuRecording>(side_, 0);
  std::lock_guard lock(pools_mutex_);
  const uint64_t pool = request->id ? *request->id : next_pool_++;
  open_pools.insert(pool);
  return std::make_unique<GpuRecording>(side_, pool);
}

void GpuHost::release_pool(ir::Device, uint64_t pool) {
  std::lock_guard lock(pools_mutex_);
  const auto open = open_pools.find(pool);
  if (open == open_pools.end()) throw std::logic_error("a pool was released twice");
  open_pools.erase(open);
  if (!open_pools.contains(pool)) memory_->release(pool);
}

CUstream GpuHost::make_stream() {
  CUstream stream = nullptr;
  driver_.check(driver_.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  std::lock_guard lock(pools_mutex_);
  streams_.push_back(stream);
  return stream;
}

void GpuHost::use(CUstream stream) { current = stream; }

void GpuHost::upload(void* to, const std::vector<float>& values) {
  const size_t bytes = values.size() * sizeof(float);
  driver_.check(driver_.copy_to_device(address(to), values.data(), bytes, current), "cuMemcpyHtoDAsync");
  driver_.check(driver_.stream_synchronize(current), "cuStreamSynchronize");
}

std::vector<float> GpuHost::download(const void* from, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  const size_t bytes = values.size() * sizeof(float);
  driver_.check(driver_.copy_to_host(values.data(), address(from), bytes, current), "cuMemcpyDtoHAsync");
  driver_.check(driver_.stream_synchronize(current), "cuStreamSynchronize");
  return values;
}

void GpuHost::copy(Frame& frame, const ExternCall& call) {
  const BufferId from{call.args.at(0).value()->index};
  frame.allocate(call.results.at(0));
  const int64_t bytes = frame.plan().buffers[from.index].type.span() * static_cast<int64_t>(sizeof(float));
  driver_.check(driver_.copy_on_device(address(frame.data(call.results[0])), address(frame.data(from)),
                                       static_cast<size_t>(bytes), current),
                "cuMemcpyDtoDAsync");
}

}  // namespace sinter::runtime::fake
