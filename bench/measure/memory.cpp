#include "bench/measure/memory.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "bench/measure/timer.h"

namespace sinter::bench {
namespace {

/// Follows the CPU allocator of the threads that carry it.
class CpuPeak : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*address*/, int64_t size, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device device) override {
    if (!device.is_cpu()) return;
    const std::scoped_lock lock(mutex_);
    now_ += size;
    peak_ = std::max(peak_, now_);
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  [[nodiscard]] int64_t peak() const { return peak_; }

 private:
  std::mutex mutex_;
  int64_t now_ = 0;
  int64_t peak_ = 0;
};

int64_t cpu_peak(const std::function<void()>& call) {
  auto peak = std::make_shared<CpuPeak>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, peak);
  call();
  return peak->peak();
}

int64_t cuda_peak(at::Device device, const std::function<void()>& call) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  synchronize(device);
  allocator::resetPeakStats(device.index());
  const int64_t before = allocator::getDeviceStats(device.index()).allocated_bytes[all].current;
  call();
  synchronize(device);
  return allocator::getDeviceStats(device.index()).allocated_bytes[all].peak - before;
}

}  // namespace

int64_t peak_bytes(at::Device device, const std::function<void()>& call) {
  return device.is_cuda() ? cuda_peak(device, call) : cpu_peak(call);
}

int64_t cache_bytes(at::Device device) {
  if (device.is_cuda()) return at::cuda::getDeviceProperties(device.index())->l2CacheSize;
  const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return last_level > 0 ? last_level : int64_t{32} << 20;
}

}  // namespace sinter::bench
