#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "compiler/support/errors.h"

namespace sinter::runtime {
namespace {

constexpr const char* library_name = "libcuda.so.1";

/// Resolves entry points by name; remembers the first one that is missing.
class Resolver {
 public:
  explicit Resolver(void* library)
      : find_(reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(library, "cuGetProcAddress_v2"))) {
    if (find_ == nullptr) missing_ = "cuGetProcAddress_v2";
  }

  template <class Function>
  void operator()(Function& slot, const char* name) {
    if (find_ == nullptr) return;
    void* address = nullptr;
    if (find_(name, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, nullptr) != CUDA_SUCCESS) address = nullptr;
    if (address == nullptr && missing_.empty()) missing_ = name;
    slot = reinterpret_cast<Function>(address);
  }

  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  decltype(&::cuGetProcAddress) find_;
  std::string missing_;
};

void resolve(Driver& d, Resolver& r) {
  r(d.init, "cuInit");
  r(d.error_string, "cuGetErrorString");
  r(d.device_get, "cuDeviceGet");
  r(d.device_count, "cuDeviceGetCount");
  r(d.device_name, "cuDeviceGetName");
  r(d.version, "cuDriverGetVersion");
  r(d.device_attribute, "cuDeviceGetAttribute");
  r(d.primary_context, "cuDevicePrimaryCtxRetain");
  r(d.current_context, "cuCtxGetCurrent");
  r(d.device_of_context, "cuCtxGetDevice");  // of two arguments since CUDA 13, what the header calls _v2
  r(d.push_context, "cuCtxPushCurrent");
  r(d.pop_context, "cuCtxPopCurrent");
  r(d.module_load, "cuModuleLoadData");
  r(d.module_unload, "cuModuleUnload");
  r(d.module_function, "cuModuleGetFunction");
  r(d.function_attribute, "cuFuncGetAttribute");
  r(d.launch, "cuLaunchKernelEx");
  r(d.mem_alloc, "cuMemAlloc");
  r(d.mem_free, "cuMemFree");
  r(d.fill, "cuMemsetD8Async");
  r(d.copy_to_device, "cuMemcpyHtoDAsync");
  r(d.copy_to_host, "cuMemcpyDtoHAsync");
  r(d.copy_on_device, "cuMemcpyDtoDAsync");
  r(d.stream_create, "cuStreamCreate");
  r(d.stream_destroy, "cuStreamDestroy");
  r(d.stream_synchronize, "cuStreamSynchronize");
  r(d.stream_wait, "cuStreamWaitEvent");
  r(d.stream_get_id, "cuStreamGetId");
  r(d.stream_is_capturing, "cuStreamIsCapturing");
  r(d.begin_capture, "cuStreamBeginCapture");
  r(d.end_capture, "cuStreamEndCapture");
  r(d.capture_info, "cuStreamGetCaptureInfo");
  r(d.event_create, "cuEventCreate");
  r(d.event_destroy, "cuEventDestroy");
  r(d.event_record, "cuEventRecord");
  r(d.event_query, "cuEventQuery");
  r(d.event_synchronize, "cuEventSynchronize");
  r(d.event_elapsed, "cuEventElapsedTime");
  r(d.graph_instantiate, "cuGraphInstantiateWithFlags");  // what the header calls cuGraphInstantiate
  r(d.graph_destroy, "cuGraphDestroy");
  r(d.graph_exec_destroy, "cuGraphExecDestroy");
  r(d.graph_launch, "cuGraphLaunch");
  r(d.graph_set_kernel_params, "cuGraphExecKernelNodeSetParams");
}

struct Loaded {
  Driver driver{};
  std::string problem;  ///< empty when the driver is usable

  Loaded() {
    void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      problem = fmt::format("{} is not installed", library_name);
      return;
    }
    Resolver resolver(library);
    resolve(driver, resolver);
    if (!resolver.missing().empty()) {
      problem = fmt::format("the driver has no {} of CUDA {}.{}: update it", resolver.missing(), CUDA_VERSION / 1000,
                            CUDA_VERSION % 1000 / 10);
      return;
    }
    int devices = 0;
    if (driver.init(0) != CUDA_SUCCESS || driver.device_count(&devices) != CUDA_SUCCESS || devices == 0) {
      problem = "the driver finds no device";
    }
  }
};

const Loaded& loaded() {
  static const Loaded instance;
  return instance;
}

}  // namespace

const Driver* Driver::find() { return loaded().problem.empty() ? &loaded().driver : nullptr; }

const Driver& Driver::get() {
  if (!loaded().problem.empty()) throw InternalError("cuda", loaded().problem);
  return loaded().driver;
}

void Driver::fail(CUresult result, const char* what) const {
  const char* text = nullptr;
  if (error_string(result, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown error";
  throw InternalError("cuda", fmt::format("{}: {}", what, text));
}

StreamId Driver::id_of(CUstream stream) const {
  unsigned long long id = 0;
  check(stream_get_id(stream, &id), "cuStreamGetId");
  return StreamId{id};
}

CUcontext Driver::context_of(int device) const {
  static std::mutex mutex;
  static std::map<std::pair<const Driver*, int>, CUcontext> contexts;
  std::lock_guard lock(mutex);
  CUcontext& context = contexts[{this, device}];
  if (context == nullptr) {
    CUdevice handle = 0;
    check(device_get(&handle, device), "cuDeviceGet");
    check(primary_context(&context, handle), "cuDevicePrimaryCtxRetain");
  }
  return context;
}

int Driver::sm_of(int device) const {
  CUdevice handle = 0;
  int major = 0;
  int minor = 0;
  check(device_get(&handle, device), "cuDeviceGet");
  check(device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle), "cuDeviceGetAttribute");
  check(device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle), "cuDeviceGetAttribute");
  return major * 10 + minor;
}

ContextScope::ContextScope(const Driver& driver, CUcontext context) : driver_(driver) {
  CUcontext current = nullptr;
  driver_.check(driver_.current_context(&current), "cuCtxGetCurrent");
  if (current == context) return;
  driver_.check(driver_.push_context(context), "cuCtxPushCurrent");
  pushed_ = true;
}

ContextScope::~ContextScope() {
  CUcontext popped = nullptr;
  if (pushed_) driver_.pop_context(&popped);
}

}  // namespace sinter::runtime
