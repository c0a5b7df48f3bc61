#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/linear.h>

#include "bench/models/zoo.h"

namespace sinter::bench {
namespace {

struct GeluMlpImpl : torch::nn::Module {
  GeluMlpImpl() {
    fc1 = register_module("fc1", torch::nn::Linear(768, 3072));
    fc2 = register_module("fc2", torch::nn::Linear(3072, 768));
  }

  at::Tensor forward(const at::Tensor& x) { return fc2->forward(torch::gelu(fc1->forward(x))); }

  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};

}  // namespace

Model make_gelu(const Settings& /*settings*/) {
  return {nullptr, [](const std::vector<at::Tensor>& inputs) {
            const at::Tensor& x = inputs.at(0);
            return x * 0.5 * (1 + torch::erf(x / 1.41421));
          }};
}

Model make_gelu_mlp(const Settings& /*settings*/) {
  auto module = std::make_shared<GeluMlpImpl>();
  module->eval();
  return {module, [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); }};
}

}  // namespace sinter::bench
