#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "api_test.h"

/// Memory that one stream allocated and another one uses, and the stream that recordings run on.
namespace sinter::test {
namespace {

using at::Tensor;
using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;

/// Streams that aten::sinter_test_seen ran on.
std::set<cudaStream_t>& streams_seen() {
  static std::set<cudaStream_t> streams;
  return streams;
}

Tensor seen(const Tensor& x) {
  streams_seen().insert(c10::cuda::getCurrentCUDAStream().stream());
  return x * 2;
}

/// Operators of other namespaces may refuse their data, so that segments end before them.
TORCH_LIBRARY_FRAGMENT(aten, library) {
  library.def("sinter_test_seen(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.impl("sinter_test_seen", c10::DispatchKey::CUDA, &seen);
}

/// CUDA Graphs of all segments.
int64_t graphs(const Report& report) {
  int64_t sum = 0;
  for (const auto& entry : report.entries) sum += entry.graphs;
  return sum;
}

class GpuStreams : public Api {
 protected:
  void SetUp() override {
    if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
  }
  [[nodiscard]] static Tensor full(c10::IntArrayRef sizes, double value) {
    return at::full(sizes, value, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  }
  /// Calls a function with inputs that each lie elsewhere, until a graph takes copies of them.
  template <class Function>
  static void warm(const Function& fast, c10::IntArrayRef sizes) {
    std::vector<Tensor> inputs;
    for (int call = 0; call < 8; ++call) fast(inputs.emplace_back(full(sizes, 1)));
  }
  /// Keeps the current stream busy for a good part of a second.
  static void stall() { at::cuda::sleep(int64_t{1} << 30); }
};

/// A stream of the program's own, outside of LibTorch's pool.
struct OwnStream {
  OwnStream() { C10_CUDA_CHECK(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() { (void)cudaStreamDestroy(handle); }
  [[nodiscard]] CUDAStream wrapped() const { return c10::cuda::getStreamFromExternal(handle, 0); }

  cudaStream_t handle = nullptr;
};

TEST_F(GpuStreams, a_recording_runs_on_no_stream_that_a_program_can_get) {
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::sinter_test_seen", "").typed<Tensor(const Tensor&)>();
  auto fast = compile([&](const Tensor& x) { return op.call(x) + 1; }, unlimited({.mode = Mode::ReduceOverhead}));
  streams_seen().clear();
  for (int call = 0; call < 8; ++call) ASSERT_TRUE(same(fast(full({8}, call)), full({8}, 2 * call + 1)));
  ASSERT_EQ(graphs(fast.report()), 1) << fast.report();
  const cudaStream_t current = c10::cuda::getCurrentCUDAStream().stream();
  ASSERT_EQ(streams_seen().size(), 2U) << "the callers' and that of the recording";
  ASSERT_TRUE(streams_seen().contains(current));
  for (const bool high_priority : {false, true}) {
    for (int i = 0; i < 64; ++i) {
      const cudaStream_t other = c10::cuda::getStreamFromPool(high_priority).stream();
      ASSERT_FALSE(other != current && streams_seen().contains(other)) << "stream " << i << " of the pool";
    }
  }
}

/// A long sum over the inner dimension is cut into parts, which the library puts into its workspace.
TEST_F(GpuStreams, the_workspace_of_a_recorded_product_is_nobody_elses) {
  const Tensor a = at::randn({64, 1 << 16}, at::TensorOptions(at::kCUDA));
  const Tensor b = at::randn({1 << 16, 64}, at::TensorOptions(at::kCUDA));
  auto fast = compile([&](const Tensor& x) { return at::matmul(x, b) * 2; }, unlimited({.mode = Mode::ReduceOverhead}));
  for (int call = 0; call < 8; ++call) fast(a);
  ASSERT_EQ(graphs(fast.report()), 1) << fast.report();
  c10::cuda::device_synchronize();
  at::cuda::clearCublasWorkspaces();
  std::vector<Tensor> others;
  c10::cuda::CUDACachingAllocator::emptyCache();
  for (int block = 0; block < 64; ++block) others.push_back(full({1 << 20}, 7));
  const Tensor expected = at::matmul(a.to(at::kDouble), b.to(at::kDouble)) * 2;
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(same(fast(a).to(at::kDouble), expected, 1e-2)) << call;
  c10::cuda::device_synchronize();
  for (const Tensor& other : others) ASSERT_TRUE(at::equal(other, full({1 << 20}, 7))) << "a replay wrote to it";
  EXPECT_EQ(fast.stats().replayed, 11) << fast.report();
}

/// Work of two streams at once: a call of a recorded function, and products of the program's own on every stream of the
/// pool. Were one of them the stream of the recording, both would work in one workspace.
TEST_F(GpuStreams, products_beside_a_replay_keep_their_numbers) {
  const Tensor a = at::randn({64, 1 << 16}, at::TensorOptions(at::kCUDA));
  const Tensor b = at::randn({1 << 16, 64}, at::TensorOptions(at::kCUDA));
  const auto program = [&](const Tensor& x) { return at::matmul(x, b) * 2; };
  auto fast = compile(program, unlimited({.mode = Mode::ReduceOverhead}));
  for (int call = 0; call < 8; ++call) fast(a);
  const Tensor expected = at::matmul(a, b);
  const Tensor compiled = program(a);
  c10::cuda::device_synchronize();
  std::vector<Tensor> products, results;
  for (int i = 0; i < 32; ++i) {
    results.push_back(fast(a));
    const CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
    products.push_back(at::matmul(a, b));
  }
  c10::cuda::device_synchronize();
  for (size_t i = 0; i < products.size(); ++i) {
    ASSERT_TRUE(same(products[i], expected, 1e-2)) << "stream " << i;
    ASSERT_TRUE(same(results[i], compiled, 1e-2)) << "call " << i;
  }
}

/// What a frozen function keeps was allocated on one stream. It goes away while another stream still reads it.
TEST_F(GpuStreams, a_function_may_go_while_another_stream_runs_it) {
  const int64_t size = 1 << 20;
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    Tensor result;
    const CUDAStream side = c10::cuda::getStreamFromPool();
    const Tensor weight = full({size}, 3);
    {
      auto fast = compile([&](const Tensor& x) { return x * (weight * 2 + 1).tanh(); },
                          unlimited({.mode = mode, .freeze = true}));
      warm(fast, {size});
      ASSERT_EQ(fast.stats().replayed, 7) << fast.report();
      const Tensor x = full({size}, 2);
      c10::cuda::device_synchronize();
      const CUDAStreamGuard guard(side);
      stall();
      result = fast(x);
      x.record_stream(side);
    }
    std::vector<Tensor> others;
    for (int block = 0; block < 16; ++block) others.push_back(full({size}, -100));
    c10::cuda::device_synchronize();
    EXPECT_TRUE(same(result, full({size}, 2 * std::tanh(7.0)))) << (mode == Mode::Default ? "default" : "graph");
  }
}

/// The same on a stream of the program's own, gone by then.
TEST_F(GpuStreams, a_function_may_go_after_the_stream_that_runs_it) {
  const int64_t size = 1 << 20;
  const Tensor x = full({size}, 2);
  Tensor result;
  const Tensor weight = full({size}, 3);
  {
    auto fast = compile([&](const Tensor& y) { return y * (weight * 2 + 1).tanh(); }, unlimited({.freeze = true}));
    warm(fast, {size});
    ASSERT_EQ(fast.stats().replayed, 7) << fast.report();
    c10::cuda::device_synchronize();
    const OwnStream own;
    const CUDAStreamGuard guard(own.wrapped());
    stall();
    result = fast(x);
  }
  std::vector<Tensor> others;
  for (int block = 0; block < 16; ++block) others.push_back(full({size}, -100));
  c10::cuda::device_synchronize();
  EXPECT_TRUE(same(result, full({size}, 2 * std::tanh(7.0))));
}

/// The default stream of a thread has one handle in all threads. Results are kept, and looked at in the end: LibTorch's
/// own allocator takes these streams for one.
TEST_F(GpuStreams, threads_on_their_own_default_streams_share_a_graph) {
  const Tensor weight = at::randn({256, 256}, at::TensorOptions(at::kCUDA));
  const auto program = [&](const Tensor& x) { return at::matmul(at::matmul(x, weight).relu(), weight) + x; };
  auto fast = compile(program, unlimited({.mode = Mode::ReduceOverhead}));
  warm(fast, {256, 256});
  ASSERT_EQ(graphs(fast.report()), 1) << fast.report();
  constexpr int count = 4;
  std::vector<Tensor> inputs;
  std::vector<std::vector<Tensor>> results(count);
  for (int i = 0; i < count; ++i) inputs.push_back(full({256, 256}, 0.5 * i));
  c10::cuda::device_synchronize();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      const c10::NoGradGuard no_grad;
      const CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(cudaStreamPerThread, 0));
      for (int call = 0; call < 100; ++call) results[i].push_back(fast(inputs[i]));
      guard.current_stream().synchronize();
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < count; ++i) {
    const Tensor expected = program(inputs[i]);
    for (const Tensor& result : results[i]) ASSERT_TRUE(same(result, expected, 1e-2)) << "thread " << i;
  }
}

/// The handle of a stream that is destroyed may be that of the next one; what the first was given may still run.
TEST_F(GpuStreams, a_stream_made_anew_waits_for_the_one_before_it) {
  const Tensor weight = at::randn({512, 512}, at::TensorOptions(at::kCUDA));
  const auto program = [&](const Tensor& x) { return at::matmul(x, weight).relu() + 1; };
  auto fast = compile(program, unlimited({.mode = Mode::ReduceOverhead}));
  warm(fast, {512, 512});
  const Tensor x = full({512, 512}, 2);
  const Tensor y = full({512, 512}, -3);
  const Tensor expected_x = program(x);
  const Tensor expected_y = program(y);
  c10::cuda::device_synchronize();
  for (int round = 0; round < 8; ++round) {
    Tensor first, second;
    {
      const OwnStream own;
      const CUDAStreamGuard guard(own.wrapped());
      stall();
      first = fast(x);
    }
    {
      const OwnStream own;
      const CUDAStreamGuard guard(own.wrapped());
      second = fast(y);
    }
    c10::cuda::device_synchronize();
    ASSERT_TRUE(same(first, expected_x, 1e-2)) << round;
    ASSERT_TRUE(same(second, expected_y, 1e-2)) << round;
  }
}

TEST_F(GpuStreams, a_backward_pass_goes_to_the_streams_of_its_forward_passes) {
  const at::AutoGradMode grad(true);
  const Tensor weight = full({3, 2}, 0.5).set_requires_grad(true);
  Tensor held;
  const auto program = [&](const Tensor& x) {
    const Tensor loss = held.mul(2).mean();
    held = at::matmul(x, weight.t()).mul(1.5);
    loss.backward();
    return loss.detach();
  };
  const auto run = [&](auto&& called) {
    weight.mutable_grad() = Tensor();
    held = at::matmul(full({4, 2}, 1), weight.t());
    std::vector<Tensor> seen;
    for (int call = 0; call < 6; ++call) {
      c10::cuda::device_synchronize();
      const CUDAStreamGuard guard(c10::cuda::getStreamFromPool());
      seen.push_back(called(full({4, 2}, call)));
      c10::cuda::device_synchronize();
      seen.push_back(held.detach().clone());
      seen.push_back(weight.grad().clone());
      c10::cuda::device_synchronize();
    }
    return seen;
  };
  auto fast = compile(program, unlimited({}));
  const auto expected = run(program);
  const auto found = run(fast);
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_TRUE(same(found[i], expected[i])) << i << fast.report();
  EXPECT_TRUE(unbroken(fast.report()));
}

}  // namespace
}  // namespace sinter::test
