#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

/// The CUDA driver API, opened when first asked for. Nothing links against it: the same binary starts on a machine
/// without a driver, where `Driver::find` answers nullptr.
namespace sinter::runtime {

enum class StreamId : unsigned long long {};

/// The driver's entry points, in the ABI of the cuda.h this file was compiled with. Immutable after loading; lives as
/// long as the process, and its address stands for the driver.
struct Driver {
  decltype(&::cuInit) init;
  decltype(&::cuGetErrorString) error_string;
  decltype(&::cuDeviceGet) device_get;
  decltype(&::cuDeviceGetCount) device_count;
  decltype(&::cuDeviceGetName) device_name;
  decltype(&::cuDriverGetVersion) version;
  decltype(&::cuDeviceGetAttribute) device_attribute;
  decltype(&::cuDevicePrimaryCtxRetain) primary_context;
  decltype(&::cuCtxGetCurrent) current_context;
  decltype(&::cuCtxGetDevice_v2) device_of_context;
  decltype(&::cuCtxPushCurrent) push_context;
  decltype(&::cuCtxPopCurrent) pop_context;
  decltype(&::cuModuleLoadData) module_load;
  decltype(&::cuModuleUnload) module_unload;
  decltype(&::cuModuleGetFunction) module_function;
  decltype(&::cuFuncGetAttribute) function_attribute;
  decltype(&::cuLaunchKernelEx) launch;
  decltype(&::cuMemAlloc) mem_alloc;
  decltype(&::cuMemFree) mem_free;
  decltype(&::cuMemsetD8Async) fill;
  decltype(&::cuMemcpyHtoDAsync) copy_to_device;
  decltype(&::cuMemcpyDtoHAsync) copy_to_host;
  decltype(&::cuMemcpyDtoDAsync) copy_on_device;
  decltype(&::cuStreamCreate) stream_create;
  decltype(&::cuStreamDestroy) stream_destroy;
  decltype(&::cuStreamSynchronize) stream_synchronize;
  decltype(&::cuStreamWaitEvent) stream_wait;
  decltype(&::cuStreamGetId) stream_get_id;
  decltype(&::cuStreamIsCapturing) stream_is_capturing;
  decltype(&::cuStreamBeginCapture) begin_capture;
  decltype(&::cuStreamEndCapture) end_capture;
  decltype(&::cuStreamGetCaptureInfo) capture_info;
  decltype(&::cuEventCreate) event_create;
  decltype(&::cuEventDestroy) event_destroy;
  decltype(&::cuEventRecord) event_record;
  decltype(&::cuEventQuery) event_query;
  decltype(&::cuEventSynchronize) event_synchronize;
  decltype(&::cuEventElapsedTime) event_elapsed;
  decltype(&::cuGraphInstantiate) graph_instantiate;
  decltype(&::cuGraphDestroy) graph_destroy;
  decltype(&::cuGraphExecDestroy) graph_exec_destroy;
  decltype(&::cuGraphLaunch) graph_launch;
  decltype(&::cuGraphExecKernelNodeSetParams) graph_set_kernel_params;

  /// The driver, loaded and initialised at the first call; nullptr where there is none or it has no device.
  /// Thread-safe.
  [[nodiscard]] static const Driver* find();
  /// The same; throws InternalError naming the reason where there is none.
  [[nodiscard]] static const Driver& get();

  /// Throws InternalError("cuda", "<what>: <the driver's words>") unless `result` is CUDA_SUCCESS.
  void check(CUresult result, const char* what) const {
    if (result != CUDA_SUCCESS) fail(result, what);
  }
  [[noreturn]] void fail(CUresult result, const char* what) const;

  /// What tells a stream from every other one of the process, those of the past and of other threads included. Its
  /// handle does not: every thread's own default stream has the same, and that of a destroyed stream may come again.
  [[nodiscard]] StreamId id_of(CUstream stream) const;

  /// The primary context of a device, the one LibTorch uses. Retained once per process, never released.
  [[nodiscard]] CUcontext context_of(int device) const;
  /// Compute capability times 10: 90 on an H200.
  [[nodiscard]] int sm_of(int device) const;
};

/// Makes a context current for as long as it lives; costs one query when it already is.
class ContextScope {
 public:
  ContextScope(const Driver& driver, CUcontext context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

}  // namespace sinter::runtime
