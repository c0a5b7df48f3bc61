// Norms of many rows with their gradients: sums of rows and of columns in one kernel, beside eager and float64.
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/softmax.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "accuracy.h"
#include "where.h"

namespace sinter::test {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
/// Of rows, a weight and a bias.
using Norm = std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias)>;

class NormGradients : public OnDevice {
 protected:
  static Tensors with_gradients(const Norm& norm, const Tensors& in) {
    Tensors leaves;
    for (size_t i = 0; i < 3; ++i) leaves.push_back(in[i].detach().requires_grad_(true));
    const Tensor y = norm(leaves[0], leaves[1], leaves[2]);
    Tensors out = torch::autograd::grad({y}, leaves, {in[3]});
    out.push_back(y.detach());
    return out;
  }

  static void expect_as_eager(const Norm& norm, at::IntArrayRef sizes, at::ScalarType dtype) {
    SCOPED_TRACE(std::string(c10::toString(dtype)) + " rows of " + std::to_string(sizes.back()));
    const at::TensorOptions options(at::kCUDA);
    Tensors in{at::randn(sizes, options).to(dtype), (at::rand({sizes.back()}, options) + 0.5).to(dtype),
               at::randn({sizes.back()}, options).to(dtype), at::randn(sizes, options).to(dtype)};
    auto fast = sinter::compile([&](const Tensors& args) { return with_gradients(norm, args); },
                                unlimited({.mode = GetParam().mode, .strict = true}));
    Tensors exact = in;
    for (Tensor& tensor : exact) tensor = tensor.to(at::kDouble);
    exact = with_gradients(norm, exact);
    const Tensors eager = with_gradients(norm, in);
    for (int call = 0; call < 4; ++call) {
      const Tensors found = fast(in);
      ASSERT_EQ(found.size(), eager.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_LE(error(found[i], exact[i]), 1.5 * error(eager[i], exact[i]) + 1e-6) << "result " << i;
      }
    }
    EXPECT_GT(fast.stats().replayed, 0);
  }
};

TEST_P(NormGradients, of_layer_norm) {
  const Norm norm = [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return at::layer_norm(x, {x.size(-1)}, weight, bias, 1e-5);
  };
  for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    expect_as_eager(norm, {64, 197, 768}, dtype);
    expect_as_eager(norm, {131072, 64}, dtype);
    expect_as_eager(norm, {4096, 4096}, dtype);
    expect_as_eager(norm, {8448, 1000}, dtype);
  }
}

TEST_P(NormGradients, of_rms_norm_and_of_what_comes_before_it) {
  const Norm norm = [](const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return at::rms_norm(at::softmax(x + bias, -1), {x.size(-1)}, weight, 1e-5);
  };
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    expect_as_eager(norm, {16896, 512}, dtype);
    expect_as_eager(norm, {9000, 1536}, dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, NormGradients,
                         ::testing::Values(Where{"launched", at::kCUDA, Mode::Default},
                                           Where{"graph", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

}  // namespace
}  // namespace sinter::test
