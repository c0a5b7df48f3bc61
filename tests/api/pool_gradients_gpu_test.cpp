// Convolutions with a bias and max pools in training: their gradients beside eager's and float64's.
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <vector>

#include "accuracy.h"
#include "where.h"

namespace sinter::test {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

struct Windows {
  std::vector<int64_t> taps, stride, padding;
};

class PoolGradients : public OnDevice {
 protected:
  [[nodiscard]] static Tensor random(at::IntArrayRef sizes, at::ScalarType dtype, at::MemoryFormat format) {
    return at::randn(sizes, at::TensorOptions(at::kCUDA)).to(dtype).contiguous(format);
  }
  [[nodiscard]] static Options options() { return unlimited({.mode = GetParam().mode, .strict = true}); }

  static Tensors pooled(const Windows& windows, const Tensors& in) {
    const Tensor leaf = in[0].detach().requires_grad_(true);
    const Tensor y = at::max_pool2d(leaf, windows.taps, windows.stride, windows.padding);
    return {y.detach(), torch::autograd::grad({y}, {leaf}, {in[1]})[0]};
  }

  /// LibTorch's kernel for channels-last loses the gradient of a window that holds nothing but -inf; the generated one
  /// gives it to the first element, as LibTorch's other kernels do. There is none here.
  static void expect_eagers_elements(const Windows& windows, at::ScalarType dtype, at::MemoryFormat format) {
    auto fast = compile([&](const Tensors& in) { return pooled(windows, in); }, options());
    for (int call = 0; call < 4; ++call) {
      // Elements of few numbers, so that windows have several largest.
      Tensor x = random({3, 16, 18, 23}, dtype, format).mul(2).round();
      x.select(1, 3).masked_fill_(x.select(1, 3) > 1, std::numeric_limits<float>::quiet_NaN());
      if (format == at::MemoryFormat::Contiguous) x.select(1, 4).fill_(-std::numeric_limits<float>::infinity());
      const Tensor d = random(at::max_pool2d(x, windows.taps, windows.stride, windows.padding).sizes(), dtype, format);
      const Tensors in{x, d}, eager = pooled(windows, in), found = fast(in);
      for (size_t i = 0; i < eager.size(); ++i) {
        EXPECT_TRUE(at::allclose(found[i], eager[i], 0, 0, /*equal_nan=*/true))
            << "result " << i << " of windows of " << windows.taps << " " << dtype << " " << format << "\n"
            << fast.report();
      }
    }
    EXPECT_GT(fast.stats().replayed, 0) << fast.report();
    EXPECT_EQ(calls_of(fast.report(), "aten::max_pool2d_with_indices"), apart(windows) ? 0 : 1) << fast.report();
    EXPECT_EQ(calls_of(fast.report(), "aten::max_pool2d_with_indices_backward"), 0) << fast.report();
  }

  /// LibTorch's own kernel for channels-last runs where windows overlap.
  static bool apart(const Windows& windows) { return windows.taps == windows.stride; }
};

TEST_P(PoolGradients, are_eagers) {
  const Windows all[]{{{2, 2}, {2, 2}, {0, 0}}, {{3, 2}, {3, 2}, {0, 0}}, {{1, 4}, {1, 4}, {0, 0}},
                      {{3, 3}, {2, 2}, {1, 1}}, {{3, 3}, {2, 2}, {0, 0}}, {{3, 2}, {1, 1}, {1, 0}}};
  for (const Windows& windows : all) {
    for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
      expect_eagers_elements(windows, dtype, at::MemoryFormat::ChannelsLast);
      expect_eagers_elements(windows, dtype, at::MemoryFormat::Contiguous);
    }
  }
}

/// The gradients of an image, a weight and a bias: of a convolution, ReLU and a pool.
Tensors block(const Tensors& in) {
  Tensors leaves;
  for (size_t i = 0; i < 3; ++i) leaves.push_back(in[i].detach().requires_grad_(true));
  const Tensor y = at::max_pool2d(at::relu(at::conv2d(leaves[0], leaves[1], leaves[2])), 2);
  Tensors out = torch::autograd::grad({y}, leaves, {in[3]});
  out.push_back(y.detach());
  return out;
}

/// Of small integers all sums are exact in every order, so that each takes the same elements for the largest.
TEST_P(PoolGradients, meet_those_of_a_convolution_and_its_bias) {
  const FullPrecision exact_products;
  for (const auto dtype : {at::kFloat, at::kHalf}) {
    auto fast = compile(block, options());
    for (int call = 0; call < 4; ++call) {
      const auto whole = [&](at::IntArrayRef sizes) {
        const auto format = sizes.size() == 4 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
        return random(sizes, dtype, format).round().clamp(-2, 2);
      };
      const Tensors in{whole({4, 32, 19, 22}), whole({48, 32, 1, 1}), whole({48}), whole({4, 48, 9, 11})};
      const Tensors eager = block(in), found = fast(in);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_TRUE(found[i].equal(eager[i])) << "result " << i << " " << dtype << "\n" << fast.report();
      }
    }
    EXPECT_GT(fast.stats().replayed, 0) << fast.report();
    EXPECT_GT(calls_of(fast.report(), "aten::convolution_backward"), 0) << fast.report();
    EXPECT_EQ(calls_of(fast.report(), "aten::max_pool2d_with_indices"), 0) << fast.report();
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, PoolGradients,
                         ::testing::Values(Where{"launched", at::kCUDA, Mode::Default},
                                           Where{"graph", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

}  // namespace
}  // namespace sinter::test
