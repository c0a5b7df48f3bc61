#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include "bench/models/zoo.h"

namespace sinter::bench {
namespace {

constexpr int64_t features = 256;
constexpr int64_t lstm_hidden = 512;

struct LstmImpl : torch::nn::Module {
  explicit LstmImpl(int64_t layers) {
    lstm = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(features, lstm_hidden).num_layers(layers).batch_first(true)));
    head = register_module("head", torch::nn::Linear(lstm_hidden, features));
    randomise(*this);
  }

  at::Tensor forward(const at::Tensor& x) { return head->forward(std::get<0>(lstm->forward(x))); }

  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear head{nullptr};
};

}  // namespace

Model make_lstm(const Settings& settings) {
  auto module = std::make_shared<LstmImpl>(integer_of(settings, "layers"));
  module->eval();
  return {module, [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); }};
}

}  // namespace sinter::bench
