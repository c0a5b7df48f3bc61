#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/adaptive.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "bench/models/zoo.h"

namespace sinter::bench {
namespace {

torch::nn::ReLU relu_in_place() { return torch::nn::ReLU(torch::nn::ReLUOptions().inplace(true)); }

/// 3x3 convolutions with a ReLU each; `pool` stands for a halving of height and width.
torch::nn::Sequential convolutions() {
  constexpr int64_t pool = 0;
  constexpr int64_t widths[] = {64,   64,  pool, 128, 128,  pool, 256, 256, 256,
                                pool, 512, 512,  512, pool, 512,  512, 512, pool};
  torch::nn::Sequential sequence;
  int64_t in = 3;
  for (const int64_t out : widths) {
    if (out == pool) {
      sequence->push_back(torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(2).stride(2)));
      continue;
    }
    sequence->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1)));
    sequence->push_back(relu_in_place());
    in = out;
  }
  return sequence;
}

struct VggImpl : torch::nn::Module {
  explicit VggImpl(int64_t hidden) {
    features = register_module("features", convolutions());
    avgpool = torch::nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions({7, 7}));
    classifier = register_module(
        "classifier", torch::nn::Sequential(torch::nn::Linear(512 * 7 * 7, hidden), relu_in_place(),
                                            torch::nn::Dropout(), torch::nn::Linear(hidden, hidden), relu_in_place(),
                                            torch::nn::Dropout(), torch::nn::Linear(hidden, 1000)));
    randomise(*this);
  }

  at::Tensor forward(const at::Tensor& x) {
    return classifier->forward(torch::flatten(avgpool->forward(features->forward(x)), 1));
  }

  torch::nn::Sequential features{nullptr}, classifier{nullptr};
  torch::nn::AdaptiveAvgPool2d avgpool{nullptr};
};

}  // namespace

Model make_vgg16(const Settings& settings) {
  auto module = std::make_shared<VggImpl>(integer_of(settings, "hidden"));
  module->eval();
  return {module, [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); }};
}

}  // namespace sinter::bench
