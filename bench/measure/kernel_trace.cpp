#include "bench/measure/kernel_trace.h"

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>

namespace sinter::bench {
namespace {

/// CUPTI hands finished buffers to a plain function, which leaves no other place for what it collects.
std::vector<TracedKernel>* collecting = nullptr;

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;

  [[nodiscard]] bool complete() const { return register_callbacks && enable && disable && flush && next; }
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

const Cupti& cupti() {
  static const Cupti loaded = [] {
    Cupti api;
    void* library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return api;
    find(library, "cuptiActivityRegisterCallbacks", api.register_callbacks);
    find(library, "cuptiActivityEnable", api.enable);
    find(library, "cuptiActivityDisable", api.disable);
    find(library, "cuptiActivityFlushAll", api.flush);
    find(library, "cuptiActivityGetNextRecord", api.next);
    return api;
  }();
  return loaded;
}

constexpr size_t buffer_bytes = size_t{8} << 20;

void request_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, buffer_bytes));
  *size = *buffer == nullptr ? 0 : buffer_bytes;
  *max_records = 0;
}

void complete_buffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*size*/, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (collecting != nullptr && cupti().next(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
    collecting->push_back({kernel->name, static_cast<double>(kernel->end - kernel->start) / 1e3});
  }
  std::free(buffer);
}

}  // namespace

std::optional<std::vector<TracedKernel>> trace_kernels(const std::function<void()>& call) {
  const Cupti& api = cupti();
  if (!api.complete()) return std::nullopt;
  if (api.register_callbacks(request_buffer, complete_buffer) != CUPTI_SUCCESS) return std::nullopt;
  if (api.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) return std::nullopt;
  std::vector<TracedKernel> kernels;
  cudaDeviceSynchronize();
  api.flush(0);
  collecting = &kernels;
  call();
  cudaDeviceSynchronize();
  api.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  collecting = nullptr;
  api.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  return kernels;
}

}  // namespace sinter::bench
