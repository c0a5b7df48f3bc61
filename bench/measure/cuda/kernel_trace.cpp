#include "bench/measure/kernel_trace.h"

#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <span>
#include <unordered_map>

#include "bench/measure/busy_time.h"
#include "bench/measure/operator_calls.h"

namespace sinter::bench {
namespace {

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;

  [[nodiscard]] bool complete() const {
    return register_callbacks && enable && disable && flush && next && push && pop;
  }
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
    find(library, "cuptiActivityPushExternalCorrelationId", api.push);
    find(library, "cuptiActivityPopExternalCorrelationId", api.pop);
    return api;
  }();
  return loaded;
}

/// What CUPTI's records say, before kernels and operators are brought together.
struct Records {
  struct Kernel {
    std::string name;
    uint32_t correlation = 0;  ///< the launch
  };
  std::vector<Kernel> kernels;
  std::vector<Interval> intervals;               ///< by kernel
  std::unordered_map<uint32_t, uint64_t> calls;  ///< launch to operator call
};

/// CUPTI hands finished buffers to a plain function, which leaves no other place for what it collects.
Records* collecting = nullptr;

constexpr size_t buffer_bytes = size_t{8} << 20;

void request_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, buffer_bytes));
  *size = *buffer == nullptr ? 0 : buffer_bytes;
  *max_records = 0;
}

std::string copy_name(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "memcpy host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "memcpy device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "memcpy device to device";
    default:
      return "memcpy";
  }
}

template <class Activity>
void add(std::string name, const Activity& activity) {
  collecting->kernels.push_back({std::move(name), activity.correlationId});
  collecting->intervals.push_back({activity.start, activity.end, activity.streamId});
}

void collect(const CUpti_Activity& record) {
  if (record.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel9&>(record);
    add(kernel.name, kernel);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
    add(copy_name(copy.copyKind), copy);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    add("memset", reinterpret_cast<const CUpti_ActivityMemset4&>(record));
  } else if (record.kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto& link = reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(record);
    collecting->calls[link.correlationId] = link.externalId;
  }
}

void complete_buffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*size*/, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (collecting != nullptr && cupti().next(buffer, valid, &record) == CUPTI_SUCCESS) collect(*record);
  std::free(buffer);
}

/// What CUPTI records while `call` runs, of the given kinds.
std::optional<Records> record(std::span<const CUpti_ActivityKind> kinds, const std::function<void()>& call) {
  const Cupti& api = cupti();
  if (!api.complete()) return std::nullopt;
  if (api.register_callbacks(request_buffer, complete_buffer) != CUPTI_SUCCESS) return std::nullopt;
  for (const CUpti_ActivityKind kind : kinds) {
    if (api.enable(kind) != CUPTI_SUCCESS) return std::nullopt;
  }
  Records records;
  cudaDeviceSynchronize();
  api.flush(0);
  collecting = &records;
  call();
  cudaDeviceSynchronize();
  api.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  collecting = nullptr;
  for (const CUpti_ActivityKind kind : kinds) api.disable(kind);
  return records;
}

}  // namespace

std::optional<std::vector<TracedKernel>> trace_kernels(const std::function<void()>& call) {
  constexpr std::array kinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
  auto records = record(kinds, call);
  if (!records) return std::nullopt;
  const std::vector<double> busy = busy_microseconds(records->intervals);
  std::vector<TracedKernel> kernels;
  for (size_t i = 0; i < busy.size(); ++i) kernels.push_back({std::move(records->kernels[i].name), busy[i], "", 0});
  return kernels;
}

std::optional<std::vector<TracedKernel>> trace_operator_kernels(const std::function<void()>& call) {
  // A correlation record precedes that of a call of CUDA's API, so those are recorded too.
  constexpr std::array kinds{
      CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
      CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
  constexpr auto operators = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  std::mutex several_threads;
  std::vector<std::string> names;  // of the operator calls, in order
  const auto begin = [&](std::string name) {
    const std::scoped_lock lock(several_threads);
    cupti().push(operators, names.size());
    names.push_back(std::move(name));
  };
  const auto end = [] {
    uint64_t last = 0;
    cupti().pop(operators, &last);
  };
  const auto records = record(kinds, [&] { watch_operator_calls(begin, end, call); });
  if (!records) return std::nullopt;
  const std::vector<double> busy = busy_microseconds(records->intervals);
  std::vector<TracedKernel> kernels;
  for (size_t i = 0; i < busy.size(); ++i) {
    const Records::Kernel& kernel = records->kernels[i];
    TracedKernel& traced = kernels.emplace_back(TracedKernel{kernel.name, busy[i], "", 0});
    const auto found = records->calls.find(kernel.correlation);
    if (found == records->calls.end() || found->second >= names.size()) continue;
    const auto position = names.begin() + static_cast<std::ptrdiff_t>(found->second);
    traced.op = *position;
    traced.call = std::count(names.begin(), position, traced.op);
  }
  return kernels;
}

}  // namespace sinter::bench
