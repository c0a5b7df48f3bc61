#include "runtime/activity.h"

#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sinter::runtime {
namespace {

struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityEnableRuntimeApi) enable_runtime_call = nullptr;
  decltype(&cuptiActivityEnableDriverApi) enable_driver_call = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;

  [[nodiscard]] bool complete() const {
    return register_callbacks && enable && disable && enable_runtime_call && enable_driver_call && flush && next &&
           push && pop && callback_name && timestamp;
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
    find(library, "cuptiActivityEnableRuntimeApi", api.enable_runtime_call);
    find(library, "cuptiActivityEnableDriverApi", api.enable_driver_call);
    find(library, "cuptiActivityFlushAll", api.flush);
    find(library, "cuptiActivityGetNextRecord", api.next);
    find(library, "cuptiActivityPushExternalCorrelationId", api.push);
    find(library, "cuptiActivityPopExternalCorrelationId", api.pop);
    find(library, "cuptiGetCallbackName", api.callback_name);
    find(library, "cuptiGetTimestamp", api.timestamp);
    return api;
  }();
  return loaded;
}

constexpr auto caller_kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

/// What CUPTI's records say, before callers are brought together with what they called.
struct CollectedRecords {
  ActivityTrace trace;
  std::unordered_map<uint32_t, uint64_t> callers;  ///< by the number of the API call
};

/// CUPTI hands finished buffers to a plain function, which leaves no other place for what it collects.
CollectedRecords* collecting = nullptr;

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

bool is_pageable(const CUpti_ActivityMemcpy6& copy) {
  return copy.srcKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE || copy.dstKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

template <class Record>
void add_work(Activity::Kind kind, std::string name, const Record& record, bool pageable = false) {
  collecting->trace.activities.push_back({.kind = kind,
                                          .name = std::move(name),
                                          .start = record.start,
                                          .end = record.end,
                                          .stream = record.streamId,
                                          .launch = record.correlationId,
                                          .caller = std::nullopt,
                                          .in_graph = record.graphNodeId != 0,
                                          .pageable = pageable});
}

void add_api_call(const CUpti_ActivityAPI& record) {
  const auto domain =
      record.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
  const char* name = nullptr;
  if (cupti().callback_name(domain, record.cbid, &name) != CUPTI_SUCCESS || name == nullptr) return;
  std::string plain(name);
  if (const size_t version = plain.find("_v"); version != std::string::npos) plain.erase(version);
  collecting->trace.activities.push_back({.kind = Activity::Kind::api_call,
                                          .name = std::move(plain),
                                          .start = record.start,
                                          .end = record.end,
                                          .stream = 0,
                                          .launch = record.correlationId,
                                          .caller = std::nullopt,
                                          .in_graph = false,
                                          .pageable = false});
}

void collect(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel9&>(record);
      return add_work(Activity::Kind::kernel, kernel.name, kernel);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
      return add_work(Activity::Kind::copy, copy_name(copy.copyKind), copy, is_pageable(copy));
    }
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return add_work(Activity::Kind::fill, "memset", reinterpret_cast<const CUpti_ActivityMemset4&>(record));
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return add_api_call(reinterpret_cast<const CUpti_ActivityAPI&>(record));
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& link = reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(record);
      collecting->callers[link.correlationId] = link.externalId;
      return;
    }
    default:
      return;
  }
}

void complete_buffer(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*size*/, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (collecting != nullptr && cupti().next(buffer, valid, &record) == CUPTI_SUCCESS) collect(*record);
  std::free(buffer);
}

/// Calls of CUDA's API that start work of a device or may wait for it, by name. LibTorch asks many other things several
/// times an operator (for the current device, whether a stream is being recorded); to record those as well would make
/// steps that the host bounds twice as long.
bool starts_work_or_waits(std::string_view name) {
  static constexpr std::array<std::string_view, 6> parts{"Launch", "Memcpy", "Memset", "Synchronize", "lloc", "Free"};
  return std::ranges::any_of(parts,
                             [name](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

/// Leaves the other calls of one of CUDA's APIs, whose kind of activities is recorded, out of the record.
template <class EnableCall>
void leave_out_other_calls(CUpti_CallbackDomain domain, CUpti_CallbackId end, EnableCall enable_call) {
  for (CUpti_CallbackId id = 1; id < end; ++id) {
    const char* name = nullptr;
    if (cupti().callback_name(domain, id, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    if (!starts_work_or_waits(name)) enable_call(id, 0);
  }
}

/// Kinds of activities that are recorded while it lives.
class EnabledKinds {
 public:
  explicit EnabledKinds(std::span<const CUpti_ActivityKind> kinds) : kinds_(kinds) {
    for (const CUpti_ActivityKind kind : kinds) complete_ = complete_ && cupti().enable(kind) == CUPTI_SUCCESS;
    if (!complete_ || std::ranges::find(kinds, CUPTI_ACTIVITY_KIND_RUNTIME) == kinds.end()) return;
    leave_out_other_calls(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE, cupti().enable_runtime_call);
    leave_out_other_calls(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_SIZE, cupti().enable_driver_call);
  }
  ~EnabledKinds() {
    for (const CUpti_ActivityKind kind : kinds_) cupti().disable(kind);
  }
  EnabledKinds(const EnabledKinds&) = delete;
  EnabledKinds& operator=(const EnabledKinds&) = delete;

  [[nodiscard]] bool complete() const { return complete_; }

 private:
  std::span<const CUpti_ActivityKind> kinds_;
  bool complete_ = true;
};

/// Where finished buffers go while it lives.
class Collecting {
 public:
  explicit Collecting(CollectedRecords& records) {
    cupti().flush(0);
    cupti().timestamp(&records.trace.begun);
    collecting = &records;
  }
  ~Collecting() {
    cupti().flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    collecting = nullptr;
  }
  Collecting(const Collecting&) = delete;
  Collecting& operator=(const Collecting&) = delete;
};

std::span<const CUpti_ActivityKind> kinds_of(ActivityDetail detail) {
  // A correlation record precedes that of a call of CUDA's API, so those are recorded too.
  static constexpr std::array callers{
      CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
      CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};
  const std::span<const CUpti_ActivityKind> all(callers);
  return detail == ActivityDetail::kernels ? all.first(1) : all;
}

}  // namespace

RecordedActivities record_activities(ActivityDetail detail, const std::function<void()>& call) {
  if (!cupti().complete()) return {std::nullopt, "CUPTI is missing"};
  if (cupti().register_callbacks(request_buffer, complete_buffer) != CUPTI_SUCCESS) {
    return {std::nullopt, "CUPTI is in use by another tool"};
  }
  const EnabledKinds enabled(kinds_of(detail));
  if (!enabled.complete()) return {std::nullopt, "CUPTI refuses to record: another tool uses it, or it is forbidden"};
  CollectedRecords records;
  {
    const Collecting now(records);
    call();
  }
  for (Activity& activity : records.trace.activities) {
    const auto found = records.callers.find(activity.launch);
    if (found != records.callers.end()) activity.caller = found->second;
  }
  return {std::move(records.trace), {}};
}

void push_activity_caller(uint64_t caller) {
  if (collecting != nullptr) cupti().push(caller_kind, caller);
}

void pop_activity_caller() {
  uint64_t last = 0;
  if (collecting != nullptr) cupti().pop(caller_kind, &last);
}

}  // namespace sinter::runtime
