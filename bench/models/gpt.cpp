#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "bench/models/zoo.h"

namespace sinter::bench {
namespace {

constexpr int64_t gpt_width = 384;
constexpr int64_t heads = 6;
constexpr int64_t vocabulary = 8192;
constexpr int64_t context = 256;

torch::nn::LayerNorm layer_norm() { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({gpt_width})); }

/// What a layer keeps of the tokens before: [batch, heads, tokens, width / heads] each; undefined before the first.
struct Cache {
  at::Tensor key, value;
};

struct GptAttentionImpl : torch::nn::Module {
  GptAttentionImpl() {
    c_attn = register_module("c_attn", torch::nn::Linear(gpt_width, 3 * gpt_width));
    c_proj = register_module("c_proj", torch::nn::Linear(gpt_width, gpt_width));
  }

  /// Grows the cache by the tokens of `x`. A token that follows a cache comes alone, so it may see all of it.
  at::Tensor forward(const at::Tensor& x, Cache& cache) {
    const auto parts =
        c_attn->forward(x).view({x.size(0), x.size(1), 3, heads, gpt_width / heads}).permute({2, 0, 3, 1, 4}).unbind();
    const bool first = !cache.key.defined();
    cache.key = first ? parts[1] : at::cat({cache.key, parts[1]}, 2);
    cache.value = first ? parts[2] : at::cat({cache.value, parts[2]}, 2);
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], cache.key, cache.value, {}, 0.0, first);
    return c_proj->forward(mixed.transpose(1, 2).reshape(x.sizes()));
  }

  torch::nn::Linear c_attn{nullptr}, c_proj{nullptr};
};
TORCH_MODULE(GptAttention);

struct GptMlpImpl : torch::nn::Module {
  GptMlpImpl() {
    c_fc = register_module("c_fc", torch::nn::Linear(gpt_width, 4 * gpt_width));
    c_proj = register_module("c_proj", torch::nn::Linear(4 * gpt_width, gpt_width));
  }

  at::Tensor forward(const at::Tensor& x) { return c_proj->forward(at::gelu(c_fc->forward(x), "tanh")); }

  torch::nn::Linear c_fc{nullptr}, c_proj{nullptr};
};
TORCH_MODULE(GptMlp);

struct GptBlockImpl : torch::nn::Module {
  GptBlockImpl() {
    ln_1 = register_module("ln_1", layer_norm());
    ln_2 = register_module("ln_2", layer_norm());
    attn = register_module("attn", GptAttention());
    mlp = register_module("mlp", GptMlp());
  }

  at::Tensor forward(const at::Tensor& x, Cache& cache) {
    const at::Tensor attended = x + attn->forward(ln_1->forward(x), cache);
    return attended + mlp->forward(ln_2->forward(attended));
  }

  torch::nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
  GptAttention attn{nullptr};
  GptMlp mlp{nullptr};
};
TORCH_MODULE(GptBlock);

struct TransformerImpl : torch::nn::Module {
  explicit TransformerImpl(int64_t depth) {
    wte = register_module("wte", torch::nn::Embedding(vocabulary, gpt_width));
    wpe = register_module("wpe", torch::nn::Embedding(context, gpt_width));
    h = register_module("h", torch::nn::ModuleList());
    for (int64_t i = 0; i < depth; ++i) h->push_back(GptBlock());
    ln_f = register_module("ln_f", layer_norm());
  }

  at::Tensor forward(const at::Tensor& tokens, int64_t start, std::vector<Cache>& caches) {
    const at::Tensor places = at::arange(start, start + tokens.size(1), tokens.options());
    at::Tensor x = wte->forward(tokens) + wpe->forward(places);
    for (size_t i = 0; i < caches.size(); ++i) x = h->at<GptBlockImpl>(i).forward(x, caches[i]);
    return ln_f->forward(x);
  }

  torch::nn::Embedding wte{nullptr}, wpe{nullptr};
  torch::nn::ModuleList h{nullptr};
  torch::nn::LayerNorm ln_f{nullptr};
};
TORCH_MODULE(Transformer);

struct GptImpl : torch::nn::Module {
  GptImpl(int64_t depth, int64_t steps) : steps_(steps) {
    transformer = register_module("transformer", Transformer(depth));
    lm_head =
        register_module("lm_head", torch::nn::Linear(torch::nn::LinearOptions(gpt_width, vocabulary).bias(false)));
    randomise(*this);
  }

  /// The first tokens at once, the last `steps` ones one by one through the cache.
  at::Tensor forward(const at::Tensor& tokens) {
    const int64_t prompt = tokens.size(1) - steps_;
    std::vector<Cache> caches(transformer->h->size());
    std::vector<at::Tensor> logits{step(tokens.narrow(1, 0, prompt), 0, caches)};
    for (int64_t place = prompt; place < tokens.size(1); ++place) {
      logits.push_back(step(tokens.narrow(1, place, 1), place, caches));
    }
    return at::cat(logits, 1);
  }

  Transformer transformer{nullptr};
  torch::nn::Linear lm_head{nullptr};

 private:
  at::Tensor step(const at::Tensor& tokens, int64_t start, std::vector<Cache>& caches) {
    return lm_head->forward(transformer->forward(tokens, start, caches));
  }

  int64_t steps_;
};

}  // namespace

Model make_gpt(const Settings& settings) {
  auto module = std::make_shared<GptImpl>(integer_of(settings, "depth"), integer_of(settings, "steps"));
  module->eval();
  return {module, [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); }};
}

}  // namespace sinter::bench
