#include <ATen/ops/layer_norm.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/adaptive.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/pooling.h>

#include "bench/models/layers.h"
#include "bench/models/zoo.h"

namespace sinter::bench {
namespace {

constexpr double epsilon = 1e-6;

torch::nn::LayerNormOptions over(int64_t width) { return torch::nn::LayerNormOptions({width}).eps(epsilon); }

/// A layer norm over the channels of [batch, channels, height, width].
struct LayerNorm2dImpl : torch::nn::LayerNormImpl {
  explicit LayerNorm2dImpl(int64_t channels) : torch::nn::LayerNormImpl(over(channels)) {}

  at::Tensor forward(const at::Tensor& x) {
    return torch::nn::LayerNormImpl::forward(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
  }
};
TORCH_MODULE(LayerNorm2d);

torch::nn::Conv2d patches(int64_t in, int64_t out, int64_t size) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, size).stride(size));
}

/// A depthwise convolution, then two linear layers over the channels, scaled and added to what came in.
struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(int64_t width) {
    layer_scale = register_parameter("layer_scale", torch::empty({width, 1, 1}));
    block = register_module(
        "block", torch::nn::Sequential(
                     torch::nn::Conv2d(torch::nn::Conv2dOptions(width, width, 7).padding(3).groups(width)),
                     permute({0, 2, 3, 1}), torch::nn::LayerNorm(over(width)), torch::nn::Linear(width, 4 * width),
                     torch::nn::GELU(), torch::nn::Linear(4 * width, width), permute({0, 3, 1, 2})));
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor result = layer_scale * block->forward(x);
    result += x;
    return result;
  }

  at::Tensor layer_scale;
  torch::nn::Sequential block{nullptr};
};
TORCH_MODULE(Block);

struct ConvNextImpl : torch::nn::Module {
  ConvNextImpl(int64_t width, int64_t depth) {
    features = register_module("features", torch::nn::Sequential());
    features->push_back(Stage(patches(3, width, 4), LayerNorm2d(width)));
    const int64_t depths[] = {3, 3, depth, 3};
    for (size_t stage = 0; stage < std::size(depths); ++stage) {
      if (stage > 0) {
        features->push_back(Stage(LayerNorm2d(width), patches(width, 2 * width, 2)));
        width *= 2;
      }
      Stage blocks;
      for (int64_t i = 0; i < depths[stage]; ++i) blocks->push_back(Block(width));
      features->push_back(blocks);
    }
    avgpool = torch::nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions(1));
    classifier = register_module(
        "classifier", torch::nn::Sequential(LayerNorm2d(width), torch::nn::Flatten(), torch::nn::Linear(width, 1000)));
    randomise(*this);
  }

  at::Tensor forward(const at::Tensor& x) { return classifier->forward(avgpool->forward(features->forward(x))); }

  torch::nn::Sequential features{nullptr}, classifier{nullptr};
  torch::nn::AdaptiveAvgPool2d avgpool{nullptr};
};

}  // namespace

Model make_convnext_l(const Settings& settings) {
  auto module = std::make_shared<ConvNextImpl>(integer_of(settings, "width"), integer_of(settings, "depth"));
  module->eval();
  return {module, [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); }};
}

}  // namespace sinter::bench
