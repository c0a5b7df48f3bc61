#include <ATen/ATen.h>
#include <torch/nn/modules/batchnorm.h>

#include <string>
#include <vector>

#include "where.h"

/// Batch norm in training, with its gradient, beside eager.
namespace sinter::test {
namespace {

using at::Tensor;

/// What a step gives: output, gradients of input, weight and bias, running statistics.
using Step = std::vector<Tensor>;

template <class Norm>
Step step_of(Norm& norm, const Tensor& image) {
  const Tensor x = image.detach().requires_grad_();
  norm->zero_grad();
  const Tensor y = at::relu(norm->forward(x));
  (y * y).sum().backward();
  return {y.detach(),
          x.grad(),
          norm->weight.grad().clone(),
          norm->bias.grad().clone(),
          norm->running_mean.clone(),
          norm->running_var.clone()};
}

class TrainingNorm : public OnDevice {
 protected:
  template <class Norm>
  void expect_eagers_steps(at::IntArrayRef sizes, at::MemoryFormat format, double tolerance, double offset = 0) {
    Norm eager(sizes[1]), compiled(sizes[1]);
    eager->to(GetParam().device);
    compiled->to(GetParam().device);
    const auto fast = compile([&compiled](const Tensor& x) { return step_of(compiled, x); },
                              unlimited({.mode = GetParam().mode, .strict = true}));
    for (int call = 0; call < 5; ++call) {
      const Tensor x = (at::randn(sizes, at::TensorOptions(GetParam().device)) + offset).contiguous(format);
      const Step found = fast(x), wanted = step_of(eager, x);
      for (size_t i = 0; i < wanted.size(); ++i) {
        const auto outcome = same(found.at(i), wanted[i], tolerance);
        ASSERT_TRUE(outcome) << "call " << call << " result " << i << ": " << outcome.message() << fast.report();
      }
    }
    EXPECT_GT(fast.stats().replayed, 0) << fast.report();
    if (GetParam().device != at::kCUDA) return;
    for (const EntryReport& entry : fast.report().entries) {
      for (const ExternRecord& call : entry.externs) {
        EXPECT_EQ(call.op.find("batch_norm"), std::string::npos) << call.op << "\n" << fast.report();
      }
    }
  }
};

TEST_P(TrainingNorm, of_images_gives_eagers_steps) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    expect_eagers_steps<torch::nn::BatchNorm2d>({32, 64, 14, 14}, format, 1e-3);
    expect_eagers_steps<torch::nn::BatchNorm2d>({16, 64, 33, 20}, format, 1e-3);
  }
}

TEST_P(TrainingNorm, of_vectors_gives_eagers_steps) {
  expect_eagers_steps<torch::nn::BatchNorm1d>({64, 48}, at::MemoryFormat::Contiguous, 1e-3);
  expect_eagers_steps<torch::nn::BatchNorm1d>({7, 5}, at::MemoryFormat::Contiguous, 1e-3);
}

TEST_P(TrainingNorm, keeps_its_digits_where_the_mean_is_far_from_zero) {
  expect_eagers_steps<torch::nn::BatchNorm2d>({8, 32, 16, 16}, at::MemoryFormat::Contiguous, 2e-2, 1000);
}

INSTANTIATE_TEST_SUITE_P(Devices, TrainingNorm, everywhere(), name_of);

}  // namespace
}  // namespace sinter::test
