#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/full.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "api_test.h"

/// Runs that a device begins while the program is still calling its operators.
namespace sinter::test {
namespace {

using at::Tensor;

constexpr int layers = 48;
constexpr int64_t width = 64;

/// Called behind each layer.
using Between = std::function<void(int layer)>;

/// A chain of products, whose parts a device can begin before the program has called the rest.
struct Chain {
  std::vector<Tensor> weights;

  Chain() {
    for (int i = 0; i < layers; ++i) {
      weights.push_back(at::eye(width, at::TensorOptions(at::kCUDA)) + at::randn({width, width}, at::kCUDA) * 0.01);
    }
  }
  Tensor run(Tensor x, const Between& between = {}) const {
    for (int i = 0; i < layers; ++i) {
      x = at::relu(at::matmul(x, weights[static_cast<size_t>(i)]) + 0.1).clamp(-10, 10);
      if (between) between(i);
    }
    return x;
  }
};

/// Of all segments.
int64_t early_runs(const Report& report) {
  int64_t sum = 0;
  for (const auto& entry : report.entries) sum += entry.early;
  return sum;
}

class EarlyRuns : public Api {
 protected:
  void SetUp() override {
    if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
    chain_.emplace();
  }
  /// Numbers that no other call has, at an address of their own.
  [[nodiscard]] Tensor input() { return kept_.emplace_back(at::randn({8, width}, at::kCUDA)); }
  [[nodiscard]] const Chain& chain() const { return *chain_; }
  [[nodiscard]] static Options options() { return unlimited({.mode = Mode::ReduceOverhead, .strict = true}); }

 private:
  std::optional<Chain> chain_;
  std::vector<Tensor> kept_;
};

TEST_F(EarlyRuns, give_what_eager_gives) {
  auto fast = compile([&](const Tensor& x) { return chain().run(x); }, options());
  for (int call = 0; call < 20; ++call) {
    c10::cuda::device_synchronize();  // a busy device has nothing to begin
    const Tensor x = input();
    ASSERT_TRUE(same(fast(x), chain().run(x), 1e-4)) << call;
  }
  EXPECT_GE(early_runs(fast.report()), 10) << fast.report();
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(EarlyRuns, are_none_where_the_device_is_busy) {
  auto fast = compile([&](const Tensor& x) { return chain().run(x); }, options());
  const Tensor x = input();
  for (int call = 0; call < 8; ++call) fast(x);
  const Tensor expected = chain().run(x);
  c10::cuda::device_synchronize();
  at::cuda::sleep(int64_t{1} << 31);
  Tensor y = fast(x);  // begins: no graph is under way
  const int64_t before = early_runs(fast.report());
  for (int call = 0; call < 4; ++call) y = fast(x);
  EXPECT_EQ(early_runs(fast.report()), before);
  EXPECT_TRUE(same(y, expected, 1e-4));
}

/// Memory that the host fills through a pointer just before an operator reads it for the first time.
TEST_F(EarlyRuns, read_memory_no_earlier_than_the_program_does) {
  const Tensor filled = at::zeros({8, width}, at::kCUDA);
  float number = 0;
  const std::vector<float> zeros(8 * width, 0);
  const auto program = [&](const Tensor& x) {
    const cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    const Tensor y = chain().run(x, [&](int layer) {
      if (layer != layers / 2) return;
      const std::vector<float> numbers(8 * width, ++number);
      C10_CUDA_CHECK(cudaMemcpyAsync(filled.mutable_data_ptr<float>(), numbers.data(), numbers.size() * sizeof(float),
                                     cudaMemcpyHostToDevice, stream));
      C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    });
    return chain().run(y + filled);
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 20; ++call) {
    filled.zero_();
    const Tensor x = input();
    c10::cuda::device_synchronize();
    const Tensor y = fast(x);
    const Tensor expected = chain().run(chain().run(x) + filled);
    ASSERT_TRUE(same(y, expected, 1e-4)) << call;
  }
  EXPECT_GE(early_runs(fast.report()), 10) << fast.report();
}

/// The program takes another branch behind what the device has begun.
TEST_F(EarlyRuns, are_in_vain_where_the_program_goes_elsewhere) {
  bool other = false;
  const auto program = [&](const Tensor& x) {
    const Tensor y = chain().run(x);
    return other ? at::sigmoid(y) : y * 2;
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 60; ++call) {
    other = call % 12 == 11;
    c10::cuda::device_synchronize();
    const Tensor x = input();
    ASSERT_TRUE(same(fast(x), program(x), 1e-4)) << call;
  }
  EXPECT_GE(early_runs(fast.report()), 20) << fast.report();
}

TEST_F(EarlyRuns, end_with_an_exception_of_the_program) {
  int calls = 0;
  const auto program = [&](const Tensor& x) {
    return chain().run(x, [&](int layer) {
      if (layer == layers - 2 && calls % 3 == 2) throw std::runtime_error("no");
    });
  };
  auto fast = compile(program, options());
  for (; calls < 30; ++calls) {
    c10::cuda::device_synchronize();
    const Tensor x = input();
    if (calls % 3 == 2) {
      EXPECT_THROW(fast(x), std::runtime_error);
    } else {
      ASSERT_TRUE(same(fast(x), program(x), 1e-4)) << calls;
    }
  }
}

/// A weight that lies elsewhere in every call is no weight that a graph finds where it was.
TEST_F(EarlyRuns, follow_weights_that_move) {
  Chain moving;
  auto fast = compile([&](const Tensor& x) { return moving.run(x); }, options());
  std::vector<Tensor> old;
  for (int call = 0; call < 30; ++call) {
    old.push_back(moving.weights[layers - 3]);
    moving.weights[layers - 3] = old.back() * 1.01;
    c10::cuda::device_synchronize();
    const Tensor x = input();
    ASSERT_TRUE(same(fast(x), moving.run(x), 1e-4)) << call;
  }
}

TEST_F(EarlyRuns, of_several_threads_do_not_mix) {
  auto fast = compile([&](const Tensor& x) { return chain().run(x); }, options());
  const Tensor first = input();
  for (int call = 0; call < 8; ++call) fast(first);
  std::vector<Tensor> inputs;
  for (int t = 0; t < 4; ++t) inputs.push_back(input());
  c10::cuda::device_synchronize();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const c10::NoGradGuard no_grad;
      const c10::cuda::CUDAStream own = c10::cuda::getStreamFromPool();
      c10::cuda::setCurrentCUDAStream(own);
      const Tensor x = inputs[static_cast<size_t>(t)] + 0;
      const Tensor expected = chain().run(x);
      for (int call = 0; call < 30; ++call) {
        own.synchronize();
        EXPECT_TRUE(same(fast(x), expected, 1e-4)) << t << ", " << call;
      }
    });
  }
}

/// An inner call of the same function begins while the outer one has begun.
TEST_F(EarlyRuns, of_functions_that_call_each_other) {
  auto inner = compile([&](const Tensor& x) { return chain().run(x); }, options());
  Tensor noise;
  auto outer = compile(
      [&](const Tensor& x) {
        const Tensor y = chain().run(x);
        noise = inner(y);
        return chain().run(noise) + y;
      },
      options());
  for (int call = 0; call < 16; ++call) {
    c10::cuda::device_synchronize();
    const Tensor x = input();
    const Tensor y = chain().run(x);
    ASSERT_TRUE(same(outer(x), chain().run(chain().run(y)) + y, 1e-4)) << call;
    ASSERT_TRUE(same(noise, chain().run(y), 1e-4)) << call;
  }
}

}  // namespace
}  // namespace sinter::test
