#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <utility>

#include "bench/models/zoo.h"

namespace sinter::bench {
namespace {

constexpr int64_t vit_width = 768;
constexpr int64_t heads = 12;
constexpr int64_t patch = 16;

torch::nn::LayerNorm layer_norm() { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({vit_width}).eps(1e-6)); }

/// Attention of a sequence to itself with the parameters of torch.nn.MultiheadAttention: one projection to queries,
/// keys and values. [batch, tokens, width] -> the same.
struct SelfAttentionImpl : torch::nn::Module {
  SelfAttentionImpl() {
    in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * vit_width, vit_width}));
    in_proj_bias = register_parameter("in_proj_bias", torch::empty({3 * vit_width}));
    out_proj = register_module("out_proj", torch::nn::Linear(vit_width, vit_width));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor projected = at::linear(x, in_proj_weight, in_proj_bias);
    const auto parts =
        projected.view({x.size(0), x.size(1), 3, heads, vit_width / heads}).permute({2, 0, 3, 1, 4}).unbind();
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    return out_proj->forward(mixed.transpose(1, 2).reshape(x.sizes()));
  }

  at::Tensor in_proj_weight, in_proj_bias;
  torch::nn::Linear out_proj{nullptr};
};
TORCH_MODULE(SelfAttention);

struct EncoderLayerImpl : torch::nn::Module {
  EncoderLayerImpl() {
    ln_1 = register_module("ln_1", layer_norm());
    self_attention = register_module("self_attention", SelfAttention());
    ln_2 = register_module("ln_2", layer_norm());
    mlp = register_module(
        "mlp",
        torch::nn::Sequential(torch::nn::Linear(vit_width, 4 * vit_width), torch::nn::GELU(), torch::nn::Dropout(0.0),
                              torch::nn::Linear(4 * vit_width, vit_width), torch::nn::Dropout(0.0)));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor attended = x + self_attention->forward(ln_1->forward(x));
    return attended + mlp->forward(ln_2->forward(attended));
  }

  torch::nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
  SelfAttention self_attention{nullptr};
  torch::nn::Sequential mlp{nullptr};
};
TORCH_MODULE(EncoderLayer);

/// Drops patches at random in training and keeps the class token, as timm's PatchDropout, which gathers; `indexing`
/// takes the same patches by their positions.
struct PatchDropoutImpl : torch::nn::Module {
  PatchDropoutImpl(double part, bool by_index) : dropped(part), indexing(by_index) {}

  at::Tensor forward(const at::Tensor& x) {
    if (!is_training() || dropped == 0) return x;
    const int64_t patches = x.size(1) - 1;
    const int64_t kept = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(patches) * (1 - dropped)));
    const at::Tensor order = at::rand({x.size(0), patches}, x.options()).argsort(int64_t{1});
    return at::cat({x.narrow(1, 0, 1), taken(x.narrow(1, 1, patches), order.narrow(1, 0, kept))}, 1);
  }

  [[nodiscard]] at::Tensor taken(const at::Tensor& patches, const at::Tensor& order) const {
    if (!indexing) return patches.gather(1, order.unsqueeze(-1).expand({-1, -1, patches.size(2)}));
    const at::Tensor rows = at::arange(patches.size(0), order.options()).unsqueeze(1);
    return patches.index({rows, order});
  }

  double dropped;
  bool indexing;
};
TORCH_MODULE(PatchDropout);

struct EncoderImpl : torch::nn::Module {
  EncoderImpl(int64_t tokens, int64_t depth, PatchDropout dropping) {
    pos_embedding = register_parameter("pos_embedding", torch::empty({1, tokens, vit_width}));
    patch_dropout = register_module("patch_dropout", std::move(dropping));
    for (int64_t i = 0; i < depth; ++i) layers->push_back("encoder_layer_" + std::to_string(i), EncoderLayer());
    register_module("layers", layers);
    ln = register_module("ln", layer_norm());
  }

  at::Tensor forward(const at::Tensor& x) {
    return ln->forward(layers->forward(patch_dropout->forward(x + pos_embedding)));
  }

  at::Tensor pos_embedding;
  PatchDropout patch_dropout{nullptr};
  torch::nn::Sequential layers;
  torch::nn::LayerNorm ln{nullptr};
};
TORCH_MODULE(Encoder);

struct VitImpl : torch::nn::Module {
  VitImpl(int64_t depth, int64_t image_size, PatchDropout dropping) {
    const int64_t patches = (image_size / patch) * (image_size / patch);
    class_token = register_parameter("class_token", torch::empty({1, 1, vit_width}));
    conv_proj =
        register_module("conv_proj", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, vit_width, patch).stride(patch)));
    encoder = register_module("encoder", Encoder(patches + 1, depth, std::move(dropping)));
    heads_ = register_module("heads", torch::nn::Sequential());
    heads_->push_back("head", torch::nn::Linear(vit_width, 1000));
    randomise(*this);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor patches = conv_proj->forward(x).flatten(2).transpose(1, 2);
    const at::Tensor tokens = at::cat({class_token.expand({x.size(0), -1, -1}), patches}, 1);
    return heads_->forward(encoder->forward(tokens).select(1, 0));
  }

  at::Tensor class_token;
  torch::nn::Conv2d conv_proj{nullptr};
  Encoder encoder{nullptr};
  torch::nn::Sequential heads_{nullptr};
};

}  // namespace

Model make_vit_b16(const Settings& settings) {
  const PatchDropout dropping(value_of(settings, "patch_dropout"), value_of(settings, "patch_indexing") != 0);
  auto module = std::make_shared<VitImpl>(integer_of(settings, "depth"), integer_of(settings, "image_size"), dropping);
  module->eval();
  return {module, [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); }};
}

}  // namespace sinter::bench
