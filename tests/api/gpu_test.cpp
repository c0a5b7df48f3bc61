#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include <functional>
#include <optional>
#include <thread>

#include "api_test.h"

namespace sinter::test {
namespace {

int counted = 0;

at::Tensor count_and_double(const at::Tensor& x) {
  ++counted;
  return x * 2;
}

at::Tensor twice(const at::Tensor& x) { return x * 2; }

TORCH_LIBRARY(sinter_gpu_test, library) {
  library.def("counted(Tensor x) -> Tensor");
  library.impl("counted", c10::DispatchKey::CUDA, &count_and_double);
  library.def("twice(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.impl("twice", c10::DispatchKey::CUDA, &twice);
}

/// CUDA Graphs of all segments.
int64_t graphs(const Report& report) {
  int64_t sum = 0;
  for (const auto& entry : report.entries) sum += entry.graphs;
  return sum;
}

class Gpu : public Api {
 protected:
  void SetUp() override {
    if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
  }
};

TEST_F(Gpu, a_gelu_lambda_gives_eagers_results_in_every_mode_and_dtype) {
  for (const auto mode : {Mode::Default, Mode::ReduceOverhead}) {
    for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
      auto fast = compile(erf_gelu, unlimited({.mode = mode}));
      for (int call = 0; call < 6; ++call) {
        const auto x = at::randn({1000}, at::TensorOptions(at::kCUDA)).to(dtype);
        ASSERT_TRUE(same(fast(x), erf_gelu(x))) << "call " << call << "\n" << fast.report();
      }
      EXPECT_TRUE(unbroken(fast.report()));
    }
  }
}

int64_t reserved_bytes() {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(c10::cuda::current_device()).reserved_bytes[0].current;
}

/// Its values between products are as large as its square arguments.
at::Tensor chain_of_products(const at::Tensor& in, const at::Tensor& weight) {
  const at::Tensor a = at::mm(in, weight);
  const at::Tensor b = at::mm(a.relu(), weight);
  return (at::mm(b.relu(), weight) + a).sum();
}

/// LibTorch keeps memory by stream and pool: what eager calls and the warm-up used is not held beside the graph's.
TEST_F(Gpu, a_recorded_graph_holds_its_memory_once) {
  c10::cuda::CUDACachingAllocator::emptyCache();
  const at::Tensor x = at::randn({4096, 4096}, at::TensorOptions(at::kCUDA));  // 64 MiB
  const auto chain = [](const at::Tensor& in) { return chain_of_products(in, in); };
  static_cast<void>(chain(x));
  const int64_t eager = reserved_bytes();
  c10::cuda::CUDACachingAllocator::emptyCache();
  auto fast = compile(chain, unlimited({.mode = Mode::ReduceOverhead}));
  for (int call = 0; call < 6; ++call) static_cast<void>(fast(x));
  ASSERT_EQ(graphs(fast.report()), 1) << fast.report();
  EXPECT_LE(reserved_bytes(), eager + eager / 4) << fast.report();
}

/// Bytes that LibTorch's allocator keeps beyond what it kept before.
struct Reserved {
  int64_t by_graphs = 0;
  int64_t left = 0;  ///< once the compiled function is gone
};

Reserved reserved_for(const std::vector<int64_t>& sizes, const at::Tensor& weight) {
  Reserved reserved;
  c10::cuda::CUDACachingAllocator::emptyCache();
  const int64_t before = reserved_bytes();
  {
    auto fast = compile(chain_of_products, unlimited({.mode = Mode::ReduceOverhead}));
    const auto rows = [&](int64_t size) { return at::randn({size, weight.size(0)}, weight.options()); };
    for (const int64_t size : sizes) {
      const at::Tensor x = rows(size);
      for (int call = 0; call < 6; ++call) static_cast<void>(fast(x, weight));
    }
    for (const int64_t size : sizes) {
      const at::Tensor x = rows(size);
      EXPECT_TRUE(at::allclose(fast(x, weight), chain_of_products(x, weight), 1e-3, 1.0)) << size;
    }
    c10::cuda::CUDACachingAllocator::emptyCache();
    reserved.by_graphs = reserved_bytes() - before;
  }
  reserved.left = reserved_bytes() - before;
  return reserved;
}

TEST_F(Gpu, graphs_of_one_function_work_in_the_memory_of_the_largest) {
  const at::Tensor weight = at::randn({4096, 4096}, at::TensorOptions(at::kCUDA)) / 64;
  static_cast<void>(reserved_for({1024}, weight));  // libraries take workspaces for as long as the process runs
  const Reserved largest = reserved_for({8192}, weight);
  const Reserved all = reserved_for({2048, 4096, 6144, 8192, 1024, 5120, 7168, 3072}, weight);
  EXPECT_LE(all.by_graphs, largest.by_graphs + largest.by_graphs / 10);
  EXPECT_LE(all.left, int64_t{2} << 20);
}

TEST_F(Gpu, a_convolution_block_gives_eagers_results_in_every_mode) {
  ConvBnRelu model;
  model->eval();
  model->to(at::kCUDA);
  for (const auto mode : {Mode::Default, Mode::ReduceOverhead}) {
    auto fast = compile(model, unlimited({.mode = mode}));
    for (int call = 0; call < 6; ++call) {
      const auto x = at::randn({2, 3, 16, 16}, at::TensorOptions(at::kCUDA));
      const auto error = (fast(x) - model->forward(x)).abs().max().item<double>();
      ASSERT_LT(error, 2e-2) << "call " << call << "\n" << fast.report();
    }
    EXPECT_TRUE(unbroken(fast.report()));
  }
}

TEST_F(Gpu, one_compiled_object_serves_the_cpu_and_then_the_gpu) {
  auto fast = compile(erf_gelu, unlimited());
  const auto x = at::randn({100});
  for (int call = 0; call < 3; ++call) {
    ASSERT_TRUE(same(fast(x), erf_gelu(x)));
    ASSERT_TRUE(same(fast(x.cuda()), erf_gelu(x.cuda())));
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
}

TEST_F(Gpu, a_replayed_graph_never_writes_a_result_again) {
  auto fast = compile(erf_gelu, unlimited({.mode = Mode::ReduceOverhead}));
  std::vector<at::Tensor> kept;
  const auto x = at::randn({4096}, at::TensorOptions(at::kCUDA));
  for (int call = 0; call < 10; ++call) kept.push_back(fast(x + call));
  for (int call = 0; call < 10; ++call) ASSERT_TRUE(same(kept[static_cast<size_t>(call)], erf_gelu(x + call)));
  EXPECT_EQ(graphs(fast.report()), 1) << fast.report();
  EXPECT_EQ(fast.stats().replayed, 9);
}

/// Every kind of random operator that models use: without, and with a generator of their own.
std::vector<at::Tensor> random_program(const at::Tensor& x, const at::Generator& own) {
  const auto dropped = at::dropout(x, 0.3, true);
  const auto noise = at::rand_like(x) + at::randn(x.sizes(), x.options());
  return {dropped * 2, noise, at::bernoulli(x.sigmoid(), own), at::randint(100, {7}, x.options())};
}

TEST_F(Gpu, random_operators_replay_with_eagers_numbers) {
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    const auto run = [](const auto& call) {
      auto own = at::cuda::detail::createCUDAGenerator(0);
      at::manual_seed(11);
      std::vector<at::Tensor> results;
      const auto x = at::ones({1000}, at::TensorOptions(at::kCUDA));
      for (int i = 0; i < 6; ++i) {
        if (i == 4) at::manual_seed(12);
        for (auto& result : call(x, own)) results.push_back(result);
      }
      results.push_back(at::rand({5}, x.options()));  // where the generator stands afterwards
      results.push_back(at::rand({5}, own, x.options()));
      return results;
    };
    const auto wanted = run(random_program);
    // The closure binds a generator: one function for each.
    std::optional<Compiled<std::function<std::vector<at::Tensor>(const at::Tensor&)>>> fast;
    const auto results = run([&](const at::Tensor& x, const at::Generator& own) {
      if (!fast) fast.emplace([own](const at::Tensor& y) { return random_program(y, own); }, unlimited({.mode = mode}));
      return (*fast)(x);
    });
    ASSERT_EQ(results.size(), wanted.size());
    for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(at::equal(results[i], wanted[i])) << "result " << i;
    const auto report = fast->report();
    EXPECT_GE(fast->stats().replayed, 3) << report;
    EXPECT_EQ(graphs(report) > 0, mode == Mode::ReduceOverhead) << report;
  }
}

TEST_F(Gpu, calls_run_on_the_callers_stream) {
  auto fast = compile(erf_gelu, unlimited());
  const auto x = at::randn({1 << 20}, at::TensorOptions(at::kCUDA));
  for (int call = 0; call < 3; ++call) fast(x.clone());
  c10::cuda::device_synchronize();
  const auto side = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(side);
  at::cuda::sleep(int64_t{1} << 30);  // work on any other stream is done before this input is there
  const auto y = fast(x * 2);
  side.synchronize();
  EXPECT_TRUE(same(y, erf_gelu(x * 2)));
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x * call), erf_gelu(x * call)));
  side.synchronize();
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
}

TEST_F(Gpu, a_stream_that_the_callable_leaves_current_stays_current) {
  const auto before = c10::cuda::getCurrentCUDAStream();
  const auto other = c10::cuda::getStreamFromPool();
  auto fast = compile(
      [&](const at::Tensor& x) {
        c10::cuda::setCurrentCUDAStream(other);
        return x * 2;
      },
      unlimited());
  std::vector<at::Tensor> results;
  for (int call = 0; call < 4; ++call) {
    c10::cuda::setCurrentCUDAStream(before);
    const auto x = at::full({8}, call, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
    c10::cuda::device_synchronize();
    results.push_back(fast(x));
    EXPECT_EQ(c10::cuda::getCurrentCUDAStream(), other);
    c10::cuda::device_synchronize();
    EXPECT_TRUE(same(results.back(), x * 2));
    c10::cuda::device_synchronize();
  }
  c10::cuda::setCurrentCUDAStream(before);
}

/// An operator of one's own runs on every call, between two segments. It is a break unless it says that it does nothing
/// but what its schema tells.
TEST_F(Gpu, operators_of_ones_own_run_between_segments) {
  const auto x = at::ones({8}, at::TensorOptions(at::kCUDA));
  for (const bool pure : {false, true}) {
    const auto op = c10::Dispatcher::singleton()
                        .findSchemaOrThrow(pure ? "sinter_gpu_test::twice" : "sinter_gpu_test::counted", "")
                        .typed<at::Tensor(const at::Tensor&)>();
    auto fast =
        compile([&](const at::Tensor& y) { return op.call(y * 3) + 1; }, unlimited({.mode = Mode::ReduceOverhead}));
    counted = 0;
    for (int call = 0; call < 6; ++call) ASSERT_TRUE(same(fast(x * call), x * call * 6 + 1));
    EXPECT_EQ(graphs(fast.report()), 2) << fast.report();
    EXPECT_EQ(fast.stats().breaks, pure ? 0 : 1) << fast.report();
    EXPECT_EQ(counted, pure ? 0 : 6);
    EXPECT_GE(fast.stats().replayed, 4) << fast.report();
  }
}

/// cuSOLVER fails where its stream is recorded, and once more at its next call.
TEST_F(Gpu, a_library_call_that_cannot_be_recorded_runs_as_before) {
  const auto symmetric = [](const at::Tensor& x) { return at::linalg_eigvalsh(x + x.t()) * 2; };
  const auto general = [](const at::Tensor& x) { return at::real(at::linalg_eigvals(x + x.t())).sum() * 2; };
  for (const bool is_symmetric : {true, false}) {
    const auto program = [&](const at::Tensor& x) { return is_symmetric ? symmetric(x) : general(x); };
    auto fast = compile(program, unlimited({.mode = Mode::ReduceOverhead}));
    for (int call = 0; call < 6; ++call) {
      const auto x = at::randn({8, 8}, at::TensorOptions(at::kCUDA));
      ASSERT_TRUE(at::allclose(fast(x), program(x), 1e-3, 1e-3)) << "call " << call << "\n" << fast.report();
    }
    EXPECT_GT(fast.stats().replayed, 0) << fast.report();
  }
}

TEST_F(Gpu, threads_may_share_a_recorded_graph) {
  ConvBnRelu model;
  model->eval();
  model->to(at::kCUDA);
  auto fast = compile(model, unlimited({.mode = Mode::ReduceOverhead}));
  std::vector<at::Tensor> inputs;  // each lies elsewhere
  for (int call = 0; call < 8; ++call) {
    fast(inputs.emplace_back(at::randn({2, 3, 16, 16}, at::TensorOptions(at::kCUDA))));
  }
  ASSERT_EQ(graphs(fast.report()), 1) << fast.report();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&] {
      const c10::NoGradGuard no_grad;
      for (int call = 0; call < 25; ++call) {
        const auto x = at::randn({2, 3, 16, 16}, at::TensorOptions(at::kCUDA));
        if ((fast(x) - model->forward(x)).abs().max().item<double>() > 2e-2) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(fast.report().entries.size(), 1) << fast.report();
  EXPECT_GT(fast.stats().replayed, 80) << fast.report();
}

TEST_F(Gpu, scans_along_far_elements_give_eagers_results) {
  const auto run = [](const at::Tensor& chosen, const at::Tensor& x) {
    return std::make_tuple(at::cumsum(chosen == 3, 0) - 1, at::cumsum(x.cos(), 1));
  };
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    const auto fast = compile(run, unlimited({.mode = mode, .strict = true}));
    for (int call = 0; call < 4; ++call) {
      const at::Tensor chosen = at::randint(8, {300, 8}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
      const at::Tensor x = at::randn({2, 100, 5}, at::kCUDA);
      const auto [counts, sums] = fast(chosen, x);
      const auto [wanted, wanted_sums] = run(chosen, x);
      EXPECT_TRUE(at::equal(counts, wanted));
      EXPECT_EQ(counts.strides(), wanted.strides());
      EXPECT_TRUE(same(sums, wanted_sums, 1e-5));
    }
    EXPECT_GT(fast.stats().replayed, 0);
  }
}

TEST_F(Gpu, more_than_two_to_the_31_elements_in_every_layout_and_mode) {
  const auto flat = beyond_32_bits(at::kCUDA);
  const auto wide = flat.slice(0, 0, flat.numel() / 3 * 3).view({3, -1});
  const auto f = [](const at::Tensor& x) { return (x * 3 + x).contiguous(); };
  for (const auto mode : {Mode::Default, Mode::ReduceOverhead}) {
    for (const auto& x : {flat, wide.t(), wide.slice(1, 1), wide.slice(1, 0, 1).expand({3, flat.numel() / 3})}) {
      auto fast = compile(f, unlimited({.mode = mode}));
      const auto eager = fast(x);
      for (int call = 0; call < 3; ++call) ASSERT_TRUE(at::equal(fast(x), eager)) << x.sizes() << x.strides();
      EXPECT_EQ(fast.stats().replayed, 3) << fast.report();
    }
  }
}

}  // namespace
}  // namespace sinter::test
