#include "bench/measure/memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "bench/measure/cuda.h"

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

}  // namespace

int64_t peak_bytes(at::Device device, const std::function<void()>& call) {
  return device.is_cuda() ? cuda::peak_bytes(device.index(), call) : cpu_peak(call);
}

int64_t cache_bytes(at::Device device) {
  if (device.is_cuda()) return cuda::cache_bytes(device.index());
  const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return last_level > 0 ? last_level : int64_t{32} << 20;
}

}  // namespace sinter::bench
