#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "bench/measure/cuda.h"
#include "compiler/support/errors.h"

namespace sinter::bench::cuda {
namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw InternalError("benchmark", cudaGetErrorString(status));
}

cudaEvent_t handle(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

void describe(c10::DeviceIndex device, nlohmann::json& info) {
  const auto* properties = at::cuda::getDeviceProperties(device);
  int driver = 0;
  check(cudaDriverGetVersion(&driver));
  info["gpu"] = properties->name;
  info["compute_capability"] = fmt::format("{}.{}", properties->major, properties->minor);
  info["cudnn"] = at::detail::getCUDAHooks().versionRuntimeCuDNN();
  info["cuda_driver"] = driver;
  info["cuda_runtime"] = CUDART_VERSION;
}

void synchronize() { c10::cuda::device_synchronize(); }

int64_t cache_bytes(c10::DeviceIndex device) { return at::cuda::getDeviceProperties(device)->l2CacheSize; }

int64_t taken_bytes(c10::DeviceIndex device) {
  const c10::cuda::CUDAGuard guard(device);
  size_t free = 0;
  size_t all = 0;
  check(cudaMemGetInfo(&free, &all));
  return static_cast<int64_t>(all - free);
}

AllocatorPeaks allocator_peaks(c10::DeviceIndex device) {
  constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device);
  return {.allocated = stats.allocated_bytes[all].peak, .reserved = stats.reserved_bytes[all].peak};
}

Event::Event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event));
  event_ = event;
}

Event::~Event() { cudaEventDestroy(handle(event_)); }

void Event::record() { check(cudaEventRecord(handle(event_), c10::cuda::getCurrentCUDAStream().stream())); }

double Event::since(const Event& start) const {
  float elapsed = 0;
  check(cudaEventSynchronize(handle(event_)));
  check(cudaEventElapsedTime(&elapsed, handle(start.event_), handle(event_)));
  return elapsed;
}

}  // namespace sinter::bench::cuda
