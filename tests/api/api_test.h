#pragma once

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <sinter/sinter.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <limits>
#include <optional>

namespace sinter::test {

/// Every test runs without gradients unless it says otherwise.
class Api : public ::testing::Test {
 private:
  c10::NoGradGuard no_grad_;
};

/// MKL's vector functions are off by 1.5e-4 in a thread that is among the first two to call one at the same time, in
/// eager LibTorch as well. One thread calls one first.
class FirstVectorFunction : public ::testing::Environment {
  void SetUp() override { (void)at::erf(at::zeros({8})); }
};
inline const auto* const first_vector_function = ::testing::AddGlobalTestEnvironment(new FirstVectorFunction);

/// Everything is recorded and compiled, whatever it costs: what a test sees depends on no time.
inline Options unlimited(Options options = {}) {
  options.compile_budget = std::numeric_limits<double>::infinity();
  return options;
}

inline at::Tensor erf_gelu(const at::Tensor& x) { return x * 0.5 * (1 + at::erf(x / 1.41421)); }

struct ConvBnReluImpl : torch::nn::Module {
  ConvBnReluImpl()
      : conv(register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1).bias(false)))),
        bn(register_module("bn", torch::nn::BatchNorm2d(8))) {}

  at::Tensor forward(const at::Tensor& x) { return at::relu(bn->forward(conv->forward(x))); }

  torch::nn::Conv2d conv;
  torch::nn::BatchNorm2d bn;
};
TORCH_MODULE(ConvBnRelu);

/// Equal in kind, and in value up to rounding: relative and absolute, by default what the dtype allows.
inline ::testing::AssertionResult same(const at::Tensor& compiled, const at::Tensor& eager,
                                       std::optional<double> tolerance = std::nullopt) {
  if (compiled.scalar_type() != eager.scalar_type()) return ::testing::AssertionFailure() << "another dtype";
  if (compiled.sizes() != eager.sizes()) return ::testing::AssertionFailure() << "other sizes";
  if (compiled.strides() != eager.strides()) return ::testing::AssertionFailure() << "other strides";
  if (compiled.device() != eager.device()) return ::testing::AssertionFailure() << "another device";
  const bool half = eager.scalar_type() == at::kHalf;
  const bool brief = eager.scalar_type() == at::kBFloat16;
  const double relative = tolerance ? *tolerance : brief ? 1.6e-2 : half ? 1e-3 : 1e-5;
  const double absolute = tolerance ? *tolerance : brief ? 1e-2 : half ? 2e-3 : 1e-5;
  if (at::allclose(compiled, eager, relative, absolute, /*equal_nan=*/true)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "largest difference " << (compiled - eager).abs().max().item<double>();
}

/// Convolutions in full f32: in TF32, kernels for other layouts differ by a thousandth.
class FullPrecision {
 public:
  FullPrecision() { at::globalContext().setAllowTF32CuDNN(false); }
  FullPrecision(const FullPrecision&) = delete;
  FullPrecision& operator=(const FullPrecision&) = delete;
  ~FullPrecision() { at::globalContext().setAllowTF32CuDNN(was_); }

 private:
  bool was_ = at::globalContext().allowTF32CuDNN();
};

/// Replays of all entries.
inline int64_t replays(const Report& report) {
  int64_t sum = 0;
  for (const auto& entry : report.entries) sum += entry.replays;
  return sum;
}

/// The first break of the last entry; fails the test when there is none.
inline GraphBreak only_break(const Report& report) {
  if (report.entries.empty() || report.entries.back().breaks.empty()) {
    ADD_FAILURE() << "no break in\n" << report.text();
    return {};
  }
  return report.entries.back().breaks.front();
}

/// There are entries; none broke, none fell back.
inline ::testing::AssertionResult unbroken(const Report& report) {
  if (report.entries.empty()) return ::testing::AssertionFailure() << "no entry in\n" << report.text();
  for (const auto& entry : report.entries) {
    if (!entry.compiled || !entry.breaks.empty()) return ::testing::AssertionFailure() << report.text();
  }
  return ::testing::AssertionSuccess();
}

/// A tensor of more than 2^31 bytes that is zero but around the places where 32-bit arithmetic would go wrong.
inline at::Tensor beyond_32_bits(const at::Device& device) {
  constexpr int64_t limit = int64_t{1} << 31;
  auto x = at::zeros({limit + 1027}, at::TensorOptions(device).dtype(at::kChar));
  for (const int64_t place : {int64_t{0}, limit - 512, limit, limit + 1000}) {
    x.slice(0, place, place + 27).copy_(at::arange(1, 28, x.options()));
  }
  return x;
}

}  // namespace sinter::test
