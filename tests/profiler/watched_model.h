#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

/// What practitioners do by hand: a model whose modules say when they are entered and left, and put hooks on every node
/// of autograd's graph that they made.
namespace sinter::test {

/// An operator that ran, and the module that was told by hand: "-" outside of all.
struct WatchedOperator {
  std::string name;
  std::string module;
};

/// A training step of an embedding of numbers, two blocks of attention and a perceptron, and a head.
class WatchedStep {
 public:
  explicit WatchedStep(at::Device device);
  ~WatchedStep();
  WatchedStep(const WatchedStep&) = delete;
  WatchedStep& operator=(const WatchedStep&) = delete;

  /// Takes [batch, tokens, 32].
  void operator()(const at::Tensor& x);
  [[nodiscard]] std::shared_ptr<torch::nn::Module> module() const;
  /// Of the last step, in their order: those that operators call stand behind them.
  [[nodiscard]] std::vector<WatchedOperator> operators() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sinter::test
