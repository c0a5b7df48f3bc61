#include "bench/measure/memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include "bench/measure/cuda.h"
#include "bench/measure/timer.h"

namespace sinter::bench {
namespace {

/// The most memory that the process has had at one time. (getrusage's number includes that of the process it was
/// started from.)
int64_t taken_of_host() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) << 10;
  }
  return 0;
}

int64_t taken(at::Device device) { return device.is_cuda() ? cuda::taken_bytes(device.index()) : taken_of_host(); }

}  // namespace

class MemoryMeter::CpuAllocations {
 public:
  [[nodiscard]] int64_t peak() const { return peak_->peak(); }

 private:
  /// Follows the CPU allocator of the threads that carry it.
  class Peak : public c10::MemoryReportingInfoBase {
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

  std::shared_ptr<Peak> peak_ = std::make_shared<Peak>();
  c10::DebugInfoGuard guard_{c10::DebugInfoKind::PROFILER_STATE, peak_};
};

MemoryMeter::MemoryMeter(at::Device device)
    : device_(device), before_(taken(device)), cpu_(device.is_cpu() ? std::make_unique<CpuAllocations>() : nullptr) {}

MemoryMeter::~MemoryMeter() = default;

MemoryUse MemoryMeter::stop() {
  synchronize(device_);
  MemoryUse use{.device_bytes = std::max<int64_t>(0, taken(device_) - before_)};
  if (device_.is_cpu()) {
    use.allocated_bytes = use.reserved_bytes = cpu_->peak();
    cpu_.reset();
    return use;
  }
  const cuda::AllocatorPeaks peaks = cuda::allocator_peaks(device_.index());
  use.allocated_bytes = peaks.allocated;
  use.reserved_bytes = peaks.reserved;
  return use;
}

int64_t cache_bytes(at::Device device) {
  if (device.is_cuda()) return cuda::cache_bytes(device.index());
  const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return last_level > 0 ? last_level : int64_t{32} << 20;
}

}  // namespace sinter::bench
