#include <torch/script.h>

#include "groups.h"
#include "programs.h"

/// Modules of many torch::nn kinds.
namespace sinter::test::hostile {
namespace {

using at::Tensor;
namespace nn = torch::nn;

void embedding(Session& s) {
  auto layer = s.adopt(nn::Embedding(nn::EmbeddingOptions(10, 4).padding_idx(0)));
  auto f = s.compile(layer);
  for (int call = 0; call < 5; ++call) f(s.integers(10, {2, 3}));
}

void embedding_with_a_norm_limit(Session& s) {
  auto layer = s.adopt(nn::Embedding(nn::EmbeddingOptions(10, 4).max_norm(0.5)));
  auto f = s.compile(layer);
  for (int call = 0; call < 5; ++call) f(s.integers(10, {2, 3}));
}

void embedding_bag(Session& s) {
  auto layer = s.adopt(nn::EmbeddingBag(nn::EmbeddingBagOptions(10, 4).mode(torch::kSum)));
  auto f = s.compile([&layer](const Tensor& index, const Tensor& offsets) { return layer->forward(index, offsets); });
  const Tensor offsets = at::tensor({0, 2}, at::kLong).to(s.device());
  for (int call = 0; call < 5; ++call) f(s.integers(10, {6}), offsets);
}

void lstm(Session& s) {
  auto layer = s.adopt(nn::LSTM(nn::LSTMOptions(3, 4).num_layers(2).batch_first(true)));
  layer->flatten_parameters();
  auto f = s.compile([&layer](const Tensor& x) {
    const auto [y, state] = layer->forward(x);
    return std::vector<Tensor>{y, std::get<0>(state), std::get<1>(state)};
  });
  for (int call = 0; call < 5; ++call) f(s.randn({2, 5, 3}));
}

void gru_that_carries_its_state(Session& s) {
  auto layer = s.adopt(nn::GRU(nn::GRUOptions(3, 4)));
  layer->flatten_parameters();
  auto f = s.compile([&layer](const Tensor& x, const Tensor& hidden) {
    const auto [y, next] = layer->forward(x, hidden);
    return std::make_pair(y, next);
  });
  Tensor hidden = at::zeros({1, 2, 4}, s.options());
  for (int call = 0; call < 6; ++call) {
    if (auto out = f(s.randn({5, 2, 3}), hidden)) hidden = out->second;
  }
}

void multihead_attention(Session& s) {
  auto layer = s.adopt(nn::MultiheadAttention(nn::MultiheadAttentionOptions(8, 2)));
  layer->eval();
  auto f = s.compile([&layer](const Tensor& x) {
    const auto [y, weights] = layer->forward(x, x, x);
    return std::make_pair(y, weights);
  });
  for (int call = 0; call < 5; ++call) f(s.randn({5, 2, 8}));
}

void transformer_encoder(Session& s) {
  auto layer = s.adopt(nn::TransformerEncoder(
      nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16), 2)));
  layer->eval();
  auto f = s.compile([&layer](const Tensor& x) { return layer->forward(x); });
  for (int call = 0; call < 5; ++call) f(s.randn({5, 2, 8}));
}

void transformer_encoder_in_training(Session& s) {
  auto layer = s.adopt(nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16)));
  auto f = s.compile([&layer](const Tensor& x) { return layer->forward(x); });
  for (int call = 0; call < 6; ++call) f(s.randn({5, 2, 8}));
}

void convolutions_of_every_rank(Session& s) {
  auto one = s.adopt(nn::Conv1d(nn::Conv1dOptions(2, 4, 3).padding(1).groups(2)));
  auto three = s.adopt(nn::Conv3d(nn::Conv3dOptions(2, 3, 2).stride(2)));
  auto back = s.adopt(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(2, 3, 3).stride(2).output_padding(1)));
  auto f = s.compile([&](const Tensor& x) {
    return std::vector<Tensor>{one->forward(x.view({1, 2, 32})), three->forward(x.view({1, 2, 4, 4, 2})),
                               back->forward(x.view({1, 2, 4, 8}))};
  });
  for (int call = 0; call < 5; ++call) f(s.randn({64}));
}

void norms_of_every_kind(Session& s) {
  auto layer = s.adopt(nn::LayerNorm(nn::LayerNormOptions({6})));
  auto group = s.adopt(nn::GroupNorm(nn::GroupNormOptions(2, 4)));
  auto instance = s.adopt(nn::InstanceNorm2d(nn::InstanceNorm2dOptions(4).affine(true)));
  auto batch = s.adopt(nn::BatchNorm2d(4));
  batch->eval();
  nn::LocalResponseNorm local(2);
  auto f = s.compile([&](const Tensor& x) {
    return std::vector<Tensor>{layer->forward(x), group->forward(x), instance->forward(x), batch->forward(x),
                               local->forward(x)};
  });
  for (int call = 0; call < 5; ++call) f(s.randn({2, 4, 5, 6}));
}

void pooling_and_shuffling(Session& s) {
  nn::MaxPool2d maximum(nn::MaxPool2dOptions(3).stride(2).ceil_mode(true));
  nn::AdaptiveMaxPool2d adaptive(nn::AdaptiveMaxPool2dOptions({2, 3}));
  nn::AvgPool2d average(nn::AvgPool2dOptions(2).padding(1).count_include_pad(false));
  nn::PixelShuffle shuffle(nn::PixelShuffleOptions(2));
  nn::Upsample upsample(
      nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2}).mode(torch::kBilinear).align_corners(false));
  nn::ReflectionPad2d pad(1);
  auto f = s.compile([&](const Tensor& x) {
    return std::vector<Tensor>{maximum->forward(x), adaptive->forward(x), average->forward(x),
                               shuffle->forward(x), upsample->forward(x), pad->forward(x)};
  });
  for (int call = 0; call < 5; ++call) f(s.randn({1, 4, 7, 6}));
}

void a_module_list_and_a_module_used_twice(Session& s) {
  nn::ModuleList layers(nn::Linear(4, 4), nn::Linear(4, 4));
  s.adopt(layers);
  auto f = s.compile(
      [&layers](Tensor x) {
        for (const size_t index : {0, 1, 0}) x = at::relu(layers[index]->as<nn::Linear>()->forward(x));
        return x;
      },
      {.modules = {{"layers", layers.ptr()}}});
  for (int call = 0; call < 5; ++call) f(s.randn({2, 4}));
}

struct Tied : nn::Module {
  nn::Embedding table{register_module("table", nn::Embedding(6, 4))};
  nn::Linear head{register_module("head", nn::Linear(nn::LinearOptions(4, 6).bias(false)))};
  Tied() { head->weight = table->weight; }
  Tensor forward(const Tensor& index) { return head->forward(table->forward(index)); }
};

void tied_weights(Session& s) {
  const auto model = std::make_shared<Tied>();
  s.adopt(nn::ModuleHolder<Tied>(model));
  auto f = s.compile(model);
  for (int call = 0; call < 6; ++call) {
    f(s.integers(6, {3}));
    model->table->weight.mul_(0.9);
  }
}

struct WithBuffer : nn::Module {
  Tensor mask = register_buffer("mask", at::ones({3, 3}).tril());
  Tensor forward(const Tensor& x) { return x * mask; }
};

void a_buffer_replaced_in_its_module(Session& s) {
  const auto model = std::make_shared<WithBuffer>();
  model->to(s.device());
  s.watch(model);
  auto f = s.compile(model);
  for (int call = 0; call < 4; ++call) f(s.randn({3, 3}));
  model->mask = at::ones({3, 3}, s.options()).triu();
  for (int call = 0; call < 5; ++call) f(s.randn({3, 3}));
}

/// TorchScript, which on a GPU fuses what it computes once it has run twice.
void a_script_called_inside(Session& s) {
  torch::jit::Module script("script");
  script.define(R"(
def forward(self, x):
    y = torch.tanh(x * 2 + 1)
    return torch.sigmoid(y * x) - y
)");
  auto f = s.compile([&script](const Tensor& x) { return script.forward({x}).toTensor() + 1; });
  for (int call = 0; call < 8; ++call) f(s.randn({8, 8}));
}

void attention_over_sixty_lengths(Session& s) {
  auto layer = s.adopt(nn::MultiheadAttention(nn::MultiheadAttentionOptions(8, 2)));
  layer->eval();
  auto f = s.compile([&layer](const Tensor& x) { return std::get<0>(layer->forward(x, x, x)); });
  for (int64_t call = 0; call < 90; ++call) f(s.randn({1 + call % 60, 2, 8}));
}

void padding_that_goes_round(Session& s) {
  const auto options = nn::functional::PadFuncOptions({1, 2, 2, 1}).mode(torch::kCircular);
  auto f = s.compile([&options](const Tensor& x) { return nn::functional::pad(x * 2, options) + 1; });
  for (int call = 0; call < 6; ++call) f(s.randn({1, 2, 4, 3}));
}

const Program programs[] = {
    {"embedding", embedding},
    {"embedding_with_a_norm_limit", embedding_with_a_norm_limit},
    {"embedding_bag", embedding_bag},
    {"lstm", lstm},
    {"gru_that_carries_its_state", gru_that_carries_its_state},
    {"multihead_attention", multihead_attention},
    {"transformer_encoder", transformer_encoder},
    {"transformer_encoder_in_training", transformer_encoder_in_training},
    {"convolutions_of_every_rank", convolutions_of_every_rank},
    {"norms_of_every_kind", norms_of_every_kind},
    {"pooling_and_shuffling", pooling_and_shuffling},
    {"a_module_list_and_a_module_used_twice", a_module_list_and_a_module_used_twice},
    {"tied_weights", tied_weights},
    {"a_script_called_inside", a_script_called_inside},
    {"a_buffer_replaced_in_its_module", a_buffer_replaced_in_its_module},
    {"attention_over_sixty_lengths", attention_over_sixty_lengths},
    {"padding_that_goes_round", padding_that_goes_round},
};

}  // namespace

std::span<const Program> module_programs() { return programs; }

}  // namespace sinter::test::hostile
