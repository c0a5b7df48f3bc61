#include "frontend/replay/composites.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/utils/rnn.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api_test.h"

/// Operators that autograd opens before a recording sees them, and that do work of their own.
namespace sinter::test {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

/// A program, and data for calls of it.
struct Row {
  const char* name;
  std::function<Tensor(const Tensors&)> program;
  std::vector<Tensors> data;
};

Tensor longs(const std::vector<int64_t>& values) { return at::tensor(values); }

std::vector<Row> rows() {
  namespace rnn = torch::nn::utils::rnn;
  at::manual_seed(1);
  const Tensor x = at::randn({8, 4}), sequence = at::randn({3, 4, 5});
  const auto lstm = std::make_shared<torch::nn::LSTMImpl>(torch::nn::LSTMOptions(5, 6));
  const auto gru = std::make_shared<torch::nn::GRUImpl>(torch::nn::GRUOptions(5, 6).bidirectional(true));
  const auto plain = std::make_shared<torch::nn::RNNImpl>(torch::nn::RNNOptions(5, 6));
  const auto relu = std::make_shared<torch::nn::RNNImpl>(torch::nn::RNNOptions(5, 6).nonlinearity(torch::kReLU));
  const auto packed = [sequence](const auto& layer) {
    return [=](const Tensors& t) {
      const auto [y, state] = layer->forward_with_packed_input(rnn::pack_padded_sequence(sequence * 1, t[0]));
      return y.data() * 1;
    };
  };
  const std::vector<Tensors> lengths = {{longs({3, 3, 1, 1})}, {longs({3, 2, 2, 1})}};
  const Tensor log_probabilities = at::log_softmax(at::randn({6, 2, 5}), 2);
  return {
      {"tensor_split",
       [x](const Tensors& t) { return at::tensor_split(x, t[0], 0)[1].sum(0); },
       {{longs({2, 5})}, {longs({3, 6})}, {longs({1, 4})}}},
      {"tensor_split_by_a_number",
       [x](const Tensors& t) { return at::tensor_split(x, t[0], 0)[0].sum(0); },
       {{longs({2})[0].clone()}, {longs({4})[0].clone()}}},
      {"lstm", packed(lstm), lengths},
      {"gru", packed(gru), lengths},
      {"rnn_tanh", packed(plain), lengths},
      {"rnn_relu", packed(relu), lengths},
      {"pad_packed_sequence",
       [sequence](const Tensors& t) {
         const Tensor data = sequence.view({12, 5}).narrow(0, 0, 8) * 1;
         return std::get<0>(at::_pad_packed_sequence(data, t[0], false, 0, 3));
       },
       {{longs({4, 2, 2})}, {longs({4, 3, 1})}}},
      {"pack_padded_sequence_backward",
       [sequence](const Tensors& t) {
         const at::AutoGradMode gradients(true);
         const Tensor leaf = sequence.detach().clone().requires_grad_();
         const Tensor factors = at::arange(40, at::kFloat).view({8, 5});
         (std::get<0>(at::_pack_padded_sequence(leaf, t[0], false)) * factors).sum().backward();
         return leaf.grad() * 1;
       },
       lengths},
      {"ctc_loss",
       [log_probabilities](const Tensors& t) {
         return at::ctc_loss(log_probabilities * 1, longs({1, 2, 3, 1}).view({2, 2}), t[0], t[1]);
       },
       {{longs({6, 6}), longs({2, 2})}, {longs({5, 6}), longs({2, 1})}}},
      {"reshape_from_tensor",
       [x](const Tensors& t) { return at::_reshape_from_tensor(x * 1, t[0]).sum(0); },
       {{longs({4, 8})}, {longs({16, 2})}}},
      {"max_pool1d", [](const Tensors& t) { return at::max_pool1d(t[0] * 1, {2}) * 2; }, {{x}, {-x}}},
      {"choose_qparams_optimized",
       [](const Tensors& t) { return std::get<0>(at::choose_qparams_optimized(t[0] * 1, 32, 10, 0.5, 8)) * 2; },
       {{x}, {x * 3}}},
      {"sobol_engine_draw",
       [](const Tensors& t) { return std::get<0>(at::_sobol_engine_draw(t[0], 2, t[1], 2, 0, at::kFloat)) * 2; },
       {{longs({0, 0}), longs(std::vector<int64_t>(60, 1 << 29)).view({2, 30})},
        {longs({1 << 20, 1 << 21}), longs(std::vector<int64_t>(60, 1 << 28)).view({2, 30})}}},
  };
}

class Composites : public Api, public ::testing::WithParamInterface<Row> {};

TEST_P(Composites, give_what_their_data_says) {
  const auto& row = GetParam();
  auto fast = compile(row.program, unlimited());
  for (int round = 0; round < 5; ++round) {
    for (const Tensors& data : row.data) {
      Tensors copies;
      for (const Tensor& tensor : data) copies.push_back(tensor.clone());
      EXPECT_TRUE(same(fast(copies), row.program(copies))) << "round " << round;
    }
  }
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
}

INSTANTIATE_TEST_SUITE_P(Operators, Composites, ::testing::ValuesIn(rows()),
                         [](const auto& test) { return std::string(test.param.name); });

/// In every LibTorch; some are composite in the older ones alone.
TEST(CatchComposites, names_operators_that_exist) {
  for (const std::string& name : frontend::CatchComposites::names()) {
    const auto colons = name.find("::"), dot = name.find('.', colons);
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    EXPECT_TRUE(c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload})) << name;
  }
}

class Packing : public Api {};

TEST_F(Packing, weights_in_a_way_of_its_own_is_done_in_every_call) {
  auto fast = compile([](const Tensor& x) { return at::_saturate_weight_to_fp16(x * 1e6); }, unlimited());
  const Tensor x = at::ones({2, 2});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), at::full({2, 2}, 65504.0)));
}

}  // namespace
}  // namespace sinter::test
