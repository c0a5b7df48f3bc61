#include "tests/runtime/simulated_driver.h"

#include <gtest/gtest.h>

#include "runtime/cuda/graph_recorder.h"

namespace sinter::runtime::simulated {
namespace {

/// A stream, memory of one number, and a kernel that sets it.
struct SimulatedDriver : testing::Test {
  const Driver& d = driver();
  ContextScope scope{d, d.context_of(0)};
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUfunction set = nullptr;

  void SetUp() override {
    define("set", {2, [](const Launched& launched) { *launched.pointer<double>(0) = launched.number(1); }});
    d.check(d.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    d.check(d.mem_alloc(&memory, sizeof(double)), "cuMemAlloc");
    d.check(d.module_function(&set, nullptr, "set"), "cuModuleGetFunction");
    launch(0);
  }
  void TearDown() override {
    d.mem_free(memory);
    d.stream_destroy(stream);
  }
  void launch(double number) {
    uint64_t values[] = {memory, std::bit_cast<uint64_t>(number)};
    LaunchParams params(values);
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    d.check(d.launch(&config, set, params.pointers(), nullptr), "cuLaunchKernelEx");
  }
  [[nodiscard]] double number() const { return *reinterpret_cast<const double*>(memory); }
};

TEST_F(SimulatedDriver, runs_what_is_recorded_when_the_graph_is_launched) {
  launch(1);
  EXPECT_EQ(number(), 1);
  StreamCapture capture(d, stream);
  launch(2);
  EXPECT_EQ(number(), 1);
  const CUgraphNode node = capture.last_node();
  const CUgraph graph = capture.end();
  CUgraphExec exec = nullptr;
  CUgraphExec other = nullptr;
  d.check(d.graph_instantiate(&exec, graph, 0), "cuGraphInstantiate");
  d.check(d.graph_instantiate(&other, graph, 0), "cuGraphInstantiate");
  uint64_t values[] = {memory, std::bit_cast<uint64_t>(3.0)};
  LaunchParams params(values);
  CUDA_KERNEL_NODE_PARAMS node_params{};
  node_params.func = set;
  node_params.gridDimX = node_params.gridDimY = node_params.gridDimZ = 1;
  node_params.blockDimX = node_params.blockDimY = node_params.blockDimZ = 1;
  node_params.kernelParams = params.pointers();
  EXPECT_EQ(d.graph_set_kernel_params(exec, node, &node_params), CUDA_SUCCESS);
  EXPECT_EQ(number(), 1);
  EXPECT_EQ(d.graph_launch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(number(), 3);
  EXPECT_EQ(d.graph_launch(other, stream), CUDA_SUCCESS);
  EXPECT_EQ(number(), 2);
  d.graph_destroy(graph);
  EXPECT_EQ(d.graph_set_kernel_params(exec, node, &node_params), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(d.graph_launch(exec, stream), CUDA_SUCCESS) << "it needs the graph for new parameters alone";
  d.graph_exec_destroy(exec);
  d.graph_exec_destroy(other);
  EXPECT_EQ(d.graph_launch(exec, stream), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(SimulatedDriver, gives_no_graph_of_a_recording_that_waited) {
  d.check(d.begin_capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  EXPECT_EQ(d.stream_synchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUstreamCaptureStatus status{};
  EXPECT_EQ(d.stream_is_capturing(stream, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CUgraph graph = nullptr;
  EXPECT_EQ(d.end_capture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(d.stream_synchronize(stream), CUDA_SUCCESS);
}

TEST_F(SimulatedDriver, refuses_what_it_does_not_know) {
  CUfunction function = nullptr;
  EXPECT_EQ(d.module_function(&function, nullptr, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
  double here = 0;
  EXPECT_EQ(d.copy_on_device(memory, reinterpret_cast<CUdeviceptr>(&here), sizeof here, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(d.copy_on_device(memory, memory, sizeof here + 1, stream), CUDA_ERROR_INVALID_VALUE);
  CUstream gone = nullptr;
  d.check(d.stream_create(&gone, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  d.stream_destroy(gone);
  EXPECT_EQ(d.stream_synchronize(gone), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace sinter::runtime::simulated
