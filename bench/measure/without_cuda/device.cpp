#include "bench/measure/cuda.h"
#include "bench/measure/kernel_trace.h"
#include "compiler/support/errors.h"

namespace sinter::bench {
namespace {

[[noreturn]] void absent() { throw InternalError("benchmark", "this LibTorch was built without CUDA"); }

}  // namespace

std::optional<std::vector<TracedKernel>> trace_kernels(const std::function<void()>& /*call*/) { return std::nullopt; }
std::optional<std::vector<TracedKernel>> trace_operator_kernels(const std::function<void()>& /*call*/) {
  return std::nullopt;
}

namespace cuda {

void describe(c10::DeviceIndex /*device*/, nlohmann::json& /*info*/) { absent(); }
void synchronize() { absent(); }
int64_t cache_bytes(c10::DeviceIndex /*device*/) { absent(); }
int64_t taken_bytes(c10::DeviceIndex /*device*/) { absent(); }
AllocatorPeaks allocator_peaks(c10::DeviceIndex /*device*/) { absent(); }

Event::Event() { absent(); }
Event::~Event() = default;
void Event::record() { absent(); }
double Event::since(const Event& /*start*/) const { absent(); }

}  // namespace cuda

}  // namespace sinter::bench
