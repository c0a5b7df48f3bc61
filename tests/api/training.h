#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "where.h"

/// What tests of training steps share.
namespace sinter::test {

using at::Tensor;

/// Whole training steps, in grad mode.
class Training : public OnDevice {
 protected:
  Options options() const { return unlimited({.mode = GetParam().mode, .strict = true}); }
  Tensor randn(c10::IntArrayRef sizes) { return at::randn(sizes, generator_, at::kFloat).to(GetParam().device); }

 private:
  at::AutoGradMode grad_{true};
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(11);
};

/// Both have the same parameters, buffers and gradients, up to what another order of additions explains.
inline ::testing::AssertionResult alike(const torch::nn::Module& compiled, const torch::nn::Module& eager,
                                        double relative = 1e-4, double absolute = 1e-6) {
  const c10::NoGradGuard no_grad;
  const auto close = [=](const Tensor& a, const Tensor& b) {
    return at::allclose(a, b, relative, absolute, /*equal_nan=*/true);
  };
  const auto others = eager.named_parameters();
  for (const auto& parameter : compiled.named_parameters()) {
    const Tensor& other = others[parameter.key()];
    if (!close(*parameter, other)) return ::testing::AssertionFailure() << parameter.key() << " differs";
    if (parameter->grad().defined() != other.grad().defined()) {
      return ::testing::AssertionFailure() << parameter.key() << ": one has a gradient, the other none";
    }
    if (!other.grad().defined()) continue;
    if (parameter->grad().strides() != other.grad().strides() || parameter->grad().requires_grad()) {
      return ::testing::AssertionFailure() << parameter.key() << ".grad is of another kind";
    }
    if (!close(parameter->grad(), other.grad())) {
      return ::testing::AssertionFailure() << parameter.key() << ".grad differs";
    }
  }
  const auto buffers = eager.named_buffers();
  for (const auto& buffer : compiled.named_buffers()) {
    if (!close(*buffer, buffers[buffer.key()])) return ::testing::AssertionFailure() << buffer.key() << " differs";
  }
  return ::testing::AssertionSuccess();
}

inline torch::nn::Sequential mlp(at::Device device) {
  at::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Linear(6, 16), torch::nn::Tanh(), torch::nn::Linear(16, 2));
  model->to(device);
  return model;
}

using MakeModel = torch::nn::Sequential (*)(at::Device);
using Parameters = std::vector<Tensor>;
using MakeOptimizer = std::unique_ptr<torch::optim::Optimizer> (*)(const Parameters&);

template <class Optimizer, class Settings>
std::unique_ptr<torch::optim::Optimizer> made(const Parameters& parameters, const Settings& settings) {
  return std::make_unique<Optimizer>(parameters, settings);
}

}  // namespace sinter::test
