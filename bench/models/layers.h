#pragma once

#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/sequential.h>

#include <utility>
#include <vector>

/// Layers that LibTorch has for Python only.
namespace sinter::bench {

/// A Sequential that can stand in another one: LibTorch's own has no forward() of a known type.
struct StageImpl : torch::nn::SequentialImpl {
  using SequentialImpl::SequentialImpl;
  at::Tensor forward(const at::Tensor& x) { return SequentialImpl::forward(x); }
};
TORCH_MODULE(Stage);

/// torchvision's Permute: the dimensions in another order.
inline torch::nn::Functional permute(std::vector<int64_t> order) {
  return torch::nn::Functional([order = std::move(order)](const at::Tensor& x) { return x.permute(order); });
}

}  // namespace sinter::bench
