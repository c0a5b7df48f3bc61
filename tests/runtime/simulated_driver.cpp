#include "tests/runtime/simulated_driver.h"

#include <cstring>

#include "tests/runtime/simulated_device.h"

namespace sinter::runtime::simulated {
namespace {

Device& device() {
  static auto& instance = *new Device();
  return instance;
}

CUcontext primary_context() { return reinterpret_cast<CUcontext>(uintptr_t{1}); }

std::vector<CUcontext>& contexts() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

/// Calls `body` with the device, where the thread has a context.
template <class Body>
CUresult in_context(Body&& body) {
  if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard lock(device().mutex);
  return body(device());
}

void fill_contexts(Driver& d) {
  d.init = [](unsigned) { return CUDA_SUCCESS; };
  d.error_string = [](CUresult, const char** text) {
    *text = "refused by the simulated driver";
    return CUDA_SUCCESS;
  };
  d.device_count = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  d.device_get = [](CUdevice* handle, int index) {
    *handle = index;
    return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  };
  d.device_attribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    return CUDA_SUCCESS;
  };
  d.primary_context = [](CUcontext* context, CUdevice) {
    *context = primary_context();
    return CUDA_SUCCESS;
  };
  d.current_context = [](CUcontext* context) {
    *context = contexts().empty() ? nullptr : contexts().back();
    return CUDA_SUCCESS;
  };
  d.push_context = [](CUcontext context) {
    contexts().push_back(context);
    return CUDA_SUCCESS;
  };
  d.pop_context = [](CUcontext* context) {
    if (contexts().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = contexts().back();
    contexts().pop_back();
    return CUDA_SUCCESS;
  };
}

void fill_modules(Driver& d) {
  d.module_load = [](CUmodule* module, const void*) {
    *module = reinterpret_cast<CUmodule>(uintptr_t{1});
    return CUDA_SUCCESS;
  };
  d.module_unload = [](CUmodule) { return CUDA_SUCCESS; };
  d.module_function = [](CUfunction* function, CUmodule, const char* name) {
    return in_context([&](Device& on) { return on.find_function(function, name); });
  };
  d.function_attribute = [](int* value, CUfunction_attribute, CUfunction) {
    *value = 0;
    return CUDA_SUCCESS;
  };
  d.launch = [](const CUlaunchConfig* c, CUfunction function, void** params, void**) {
    return in_context([&](Device& on) {
      return on.launch(function, {c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ},
                       c->hStream, params);
    });
  };
}

/// A copy between host and device, which no recording takes.
CUresult copy_now(void* to, const void* from, CUdeviceptr on_device, size_t bytes, CUstream stream) {
  return in_context([&](Device& on) {
    if (const CUresult result = on.outside_capture(stream); result != CUDA_SUCCESS) return result;
    if (!on.holds(on_device, bytes)) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(to, from, bytes);
    return CUDA_SUCCESS;
  });
}

void fill_memory(Driver& d) {
  d.mem_alloc = [](CUdeviceptr* memory, size_t bytes) {
    return in_context([&](Device& on) { return on.allocate(memory, bytes); });
  };
  d.mem_free = [](CUdeviceptr memory) { return in_context([&](Device& on) { return on.free(memory); }); };
  d.copy_to_device = [](CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    return copy_now(reinterpret_cast<void*>(to), from, to, bytes, stream);
  };
  d.copy_to_host = [](void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return copy_now(to, reinterpret_cast<const void*>(from), from, bytes, stream);
  };
  d.copy_on_device = [](CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return in_context([&](Device& on) { return on.copy({to, from, bytes}, stream); });
  };
}

void fill_streams(Driver& d) {
  d.stream_create = [](CUstream* stream, unsigned) {
    return in_context([&](Device& on) {
      *stream = on.make_stream();
      return CUDA_SUCCESS;
    });
  };
  d.stream_destroy = [](CUstream stream) { return in_context([&](Device& on) { return on.destroy_stream(stream); }); };
  d.stream_synchronize = [](CUstream stream) {
    return in_context([&](Device& on) { return on.outside_capture(stream); });
  };
  d.stream_get_id = [](CUstream handle, unsigned long long* id) {
    return in_context([&](Device& on) {
      const Stream* stream = on.find(handle);
      if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
      *id = stream->id;
      return CUDA_SUCCESS;
    });
  };
}

/// Whoever waits for an event of the simulated driver has waited.
CUresult known(CUevent event) {
  return in_context([&](Device& on) { return on.events.find(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}

/// An event and a stream that is not recorded: recordings of several streams are not simulated.
CUresult known_outside_capture(CUevent event, CUstream stream) {
  if (const CUresult result = known(event); result != CUDA_SUCCESS) return result;
  return in_context([&](Device& on) { return on.outside_capture(stream); });
}

void fill_events(Driver& d) {
  d.event_create = [](CUevent* event, unsigned) {
    return in_context([&](Device& on) {
      *event = on.events.add({});
      return CUDA_SUCCESS;
    });
  };
  d.event_destroy = [](CUevent event) {
    return in_context([&](Device& on) { return on.events.remove(event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
  };
  d.event_record = [](CUevent event, CUstream stream) { return known_outside_capture(event, stream); };
  d.event_query = [](CUevent event) { return known(event); };
  d.event_synchronize = [](CUevent event) { return known(event); };
  d.stream_wait = [](CUstream stream, CUevent event, unsigned) { return known_outside_capture(event, stream); };
}

void fill_captures(Driver& d) {
  d.stream_is_capturing = [](CUstream stream, CUstreamCaptureStatus* status) {
    return in_context([&](Device& on) { return on.status_of(stream, status); });
  };
  d.begin_capture = [](CUstream stream, CUstreamCaptureMode) {
    return in_context([&](Device& on) { return on.begin_capture(stream); });
  };
  d.end_capture = [](CUstream stream, CUgraph* graph) {
    return in_context([&](Device& on) { return on.end_capture(stream, graph); });
  };
  d.capture_info = [](CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                      const CUgraphNode** last, const CUgraphEdgeData** edges, size_t* count) {
    *id = 0;
    *edges = nullptr;
    return in_context([&](Device& on) { return on.capture_info(stream, status, graph, last, count); });
  };
}

void fill_graphs(Driver& d) {
  d.graph_instantiate = [](CUgraphExec* exec, CUgraph graph, unsigned long long) {
    return in_context([&](Device& on) { return on.instantiate(exec, graph); });
  };
  d.graph_destroy = [](CUgraph graph) { return in_context([&](Device& on) { return on.destroy_graph(graph); }); };
  d.graph_exec_destroy = [](CUgraphExec exec) { return in_context([&](Device& on) { return on.destroy_exec(exec); }); };
  d.graph_launch = [](CUgraphExec exec, CUstream stream) {
    return in_context([&](Device& on) { return on.launch_graph(exec, stream); });
  };
  d.graph_set_kernel_params = [](CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
    return in_context([&](Device& on) { return on.set_params(exec, node, *params); });
  };
}

Driver filled() {
  Driver d{};
  fill_contexts(d);
  fill_modules(d);
  fill_memory(d);
  fill_streams(d);
  fill_events(d);
  fill_captures(d);
  fill_graphs(d);
  return d;
}

}  // namespace

Counts counts() {
  const std::lock_guard lock(device().mutex);
  return device().counts;
}

void define(const std::string& name, Kernel kernel) {
  const std::lock_guard lock(device().mutex);
  device().define(name, std::move(kernel));
}

const Driver& driver() {
  static const Driver instance = filled();
  return instance;
}

}  // namespace sinter::runtime::simulated
