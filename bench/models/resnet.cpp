#include <torch/nn/init.h>
#include <torch/nn/modules/adaptive.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include "bench/models/zoo.h"

namespace sinter::bench {
namespace {

torch::nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// 1x1, 3x3, 1x1 convolutions around a residual; the output has four times `width` channels.
struct BottleneckImpl : torch::nn::Module {
  BottleneckImpl(int64_t in, int64_t width, int64_t stride) {
    const int64_t out = 4 * width;
    conv1 = register_module("conv1", conv(in, width, 1, 1));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(width));
    conv2 = register_module("conv2", conv(width, width, 3, stride));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(width));
    conv3 = register_module("conv3", conv(width, out, 1, 1));
    bn3 = register_module("bn3", torch::nn::BatchNorm2d(out));
    if (stride != 1 || in != out) {
      downsample =
          register_module("downsample", torch::nn::Sequential(conv(in, out, 1, stride), torch::nn::BatchNorm2d(out)));
    }
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor identity = downsample.is_empty() ? x : downsample->forward(x);
    at::Tensor out = bn1->forward(conv1->forward(x)).relu_();
    out = bn2->forward(conv2->forward(out)).relu_();
    out = bn3->forward(conv3->forward(out));
    out += identity;
    return out.relu_();
  }

  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
  torch::nn::Sequential downsample{nullptr};
};
TORCH_MODULE(Bottleneck);

struct ResNet50Impl : torch::nn::Module {
  ResNet50Impl() {
    conv1 = register_module("conv1", conv(3, 64, 7, 2));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(64));
    maxpool = torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1));
    layer1 = register_module("layer1", stage(64, 64, 3, 1));
    layer2 = register_module("layer2", stage(256, 128, 4, 2));
    layer3 = register_module("layer3", stage(512, 256, 6, 2));
    layer4 = register_module("layer4", stage(1024, 512, 3, 2));
    avgpool = torch::nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions(1));
    fc = register_module("fc", torch::nn::Linear(2048, 1000));
    initialise();
  }

  at::Tensor forward(const at::Tensor& x) {
    at::Tensor out = maxpool->forward(bn1->forward(conv1->forward(x)).relu_());
    out = layer4->forward(layer3->forward(layer2->forward(layer1->forward(out))));
    return fc->forward(torch::flatten(avgpool->forward(out), 1));
  }

 private:
  static torch::nn::Sequential stage(int64_t in, int64_t width, int64_t blocks, int64_t stride) {
    torch::nn::Sequential sequence(Bottleneck(in, width, stride));
    for (int64_t block = 1; block < blocks; ++block) sequence->push_back(Bottleneck(4 * width, width, 1));
    return sequence;
  }

  /// Kaiming weights as in torchvision, and running statistics that are not the identity, so that a wrong batch norm
  /// shows in the result.
  void initialise() {
    torch::NoGradGuard no_grad;
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* convolution = module->as<torch::nn::Conv2d>()) {
        torch::nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
      } else if (auto* norm = module->as<torch::nn::BatchNorm2d>()) {
        norm->weight.uniform_(0.5, 1.0);
        norm->bias.uniform_(-0.1, 0.1);
        norm->running_mean.uniform_(-0.1, 0.1);
        norm->running_var.uniform_(0.8, 1.2);
      }
    }
  }

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::MaxPool2d maxpool{nullptr};
  torch::nn::Sequential layer1{nullptr}, layer2{nullptr}, layer3{nullptr}, layer4{nullptr};
  torch::nn::AdaptiveAvgPool2d avgpool{nullptr};
  torch::nn::Linear fc{nullptr};
};

}  // namespace

Model make_resnet50(const Settings& /*settings*/) {
  auto module = std::make_shared<ResNet50Impl>();
  module->eval();
  return {module, [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); }};
}

}  // namespace sinter::bench
