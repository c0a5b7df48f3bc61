#include "tests/runtime/simulated_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace sinter::runtime::simulated {
namespace {

constexpr size_t alignment = 512;

}  // namespace

CUresult Device::find_function(CUfunction* function, const char* name) {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) return CUDA_ERROR_NOT_FOUND;
  *function = functions_.add(found->second);
  return CUDA_SUCCESS;
}

CUresult Device::allocate(CUdeviceptr* memory, size_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto here = std::this_thread::get_id();
  bool recording = false;
  const auto invalidate = [&](Stream& stream) {
    if (!stream.capture || stream.capture->thread != here) return;
    stream.capture->alive = false;
    recording = true;
  };
  streams_.each(invalidate);
  if (recording) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  void* made = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = reinterpret_cast<CUdeviceptr>(made);
  memory_.emplace(*memory, bytes);
  return CUDA_SUCCESS;
}

CUresult Device::free(CUdeviceptr memory) {
  if (memory_.erase(memory) != 1) return CUDA_ERROR_INVALID_VALUE;
  std::free(reinterpret_cast<void*>(memory));
  return CUDA_SUCCESS;
}

bool Device::holds(CUdeviceptr memory, size_t bytes) const {
  auto next = memory_.upper_bound(memory);
  if (next == memory_.begin()) return false;
  const auto& [start, size] = *--next;
  return memory - start <= size && bytes <= size - (memory - start);
}

CUstream Device::make_stream() { return streams_.add({++next_stream_, {}}); }

CUresult Device::destroy_stream(CUstream stream) {
  return streams_.remove(stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

Stream* Device::find(CUstream stream) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return &default_stream_;
  if (stream != CU_STREAM_PER_THREAD) return streams_.find(stream);
  Stream& own = thread_streams_[std::this_thread::get_id()];
  if (own.id == 0) own.id = ++next_stream_;
  return &own;
}

CUresult Device::outside_capture(CUstream handle) {
  Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->capture) return CUDA_SUCCESS;
  stream->capture->alive = false;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

std::optional<KernelWork> Device::kernel_work(CUfunction function, const std::array<unsigned, 3>& grid,
                                              const std::array<unsigned, 3>& block, void** params) {
  const Kernel* kernel = functions_.find(function);
  const bool is_empty = std::ranges::count(grid, 0U) != 0 || std::ranges::count(block, 0U) != 0;
  if (kernel == nullptr || is_empty || (params == nullptr && kernel->params > 0)) return std::nullopt;
  KernelWork work{function, grid, block, std::vector<uint64_t>(kernel->params)};
  for (size_t i = 0; i < kernel->params; ++i) std::memcpy(&work.params[i], params[i], sizeof(uint64_t));
  return work;
}

CUresult Device::launch(CUfunction function, const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block,
                        CUstream handle, void** params) {
  Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto work = kernel_work(function, grid, block, params);
  if (!work) return CUDA_ERROR_INVALID_VALUE;
  ++counts.launches;
  return give(*stream, std::move(*work));
}

CUresult Device::copy(const CopyWork& work, CUstream handle) {
  Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!holds(work.to, work.bytes) || !holds(work.from, work.bytes)) return CUDA_ERROR_INVALID_VALUE;
  ++counts.copies;
  return give(*stream, work);
}

CUresult Device::give(Stream& stream, Work work) {
  if (!stream.capture) {
    run(work);
    return CUDA_SUCCESS;
  }
  Capture& capture = *stream.capture;
  if (!capture.alive) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  capture.last = reinterpret_cast<CUgraphNode>(next_node_++);
  graphs_.find(capture.graph)->push_back({capture.last, std::move(work)});
  return CUDA_SUCCESS;
}

void Device::run(const Work& work) {
  if (const auto* copy = std::get_if<CopyWork>(&work)) {
    std::memmove(reinterpret_cast<void*>(copy->to), reinterpret_cast<const void*>(copy->from), copy->bytes);
    return;
  }
  const auto& kernel = std::get<KernelWork>(work);
  functions_.find(kernel.function)->run({kernel.params, kernel.grid, kernel.block});
}

CUresult Device::begin_capture(CUstream handle) {
  Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (stream == &default_stream_) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = Capture{.graph = graphs_.add({}), .thread = std::this_thread::get_id()};
  ++counts.graphs;
  return CUDA_SUCCESS;
}

CUresult Device::end_capture(CUstream handle, CUgraph* graph) {
  *graph = nullptr;
  Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->capture->thread != std::this_thread::get_id()) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const Capture capture = *stream->capture;
  stream->capture.reset();
  if (capture.alive) {
    *graph = capture.graph;
    return CUDA_SUCCESS;
  }
  (void)destroy_graph(capture.graph);
  return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

CUresult Device::status_of(CUstream handle, CUstreamCaptureStatus* status) {
  const Stream* stream = find(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!stream->capture) return CUDA_SUCCESS;
  *status = stream->capture->alive ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}

CUresult Device::capture_info(CUstream handle, CUstreamCaptureStatus* status, CUgraph* graph, const CUgraphNode** last,
                              size_t* count) {
  if (const CUresult result = status_of(handle, status); result != CUDA_SUCCESS) return result;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  const Capture& capture = *find(handle)->capture;
  *graph = capture.graph;
  *last = &capture.last;
  *count = capture.last == nullptr ? 0 : 1;
  return CUDA_SUCCESS;
}

CUresult Device::instantiate(CUgraphExec* made, CUgraph graph) {
  const Nodes* nodes = graphs_.find(graph);
  if (nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *made = execs_.add({graph, *nodes});
  ++counts.instantiations;
  ++counts.graphs;
  return CUDA_SUCCESS;
}

CUresult Device::launch_graph(CUgraphExec handle, CUstream stream) {
  const Executable* exec = execs_.find(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = outside_capture(stream); result != CUDA_SUCCESS) return result;  // no child graphs
  ++counts.graph_launches;
  for (const Node& node : exec->nodes) run(node.work);
  return CUDA_SUCCESS;
}

CUresult Device::set_params(CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params) {
  Executable* exec = execs_.find(handle);
  if (exec == nullptr || graphs_.find(exec->source) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = std::ranges::find(exec->nodes, node, &Node::handle);
  if (found == exec->nodes.end() || !std::holds_alternative<KernelWork>(found->work)) return CUDA_ERROR_INVALID_VALUE;
  auto work = kernel_work(params.func, {params.gridDimX, params.gridDimY, params.gridDimZ},
                          {params.blockDimX, params.blockDimY, params.blockDimZ}, params.kernelParams);
  if (!work) return CUDA_ERROR_INVALID_VALUE;
  ++counts.params_set;
  found->work = std::move(*work);
  return CUDA_SUCCESS;
}

CUresult Device::destroy_graph(CUgraph graph) {
  if (!graphs_.remove(graph)) return CUDA_ERROR_INVALID_VALUE;
  --counts.graphs;
  return CUDA_SUCCESS;
}

CUresult Device::destroy_exec(CUgraphExec exec) {
  if (!execs_.remove(exec)) return CUDA_ERROR_INVALID_VALUE;
  --counts.graphs;
  return CUDA_SUCCESS;
}

}  // namespace sinter::runtime::simulated
