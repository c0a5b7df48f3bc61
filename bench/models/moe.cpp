#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>

#include "bench/models/zoo.h"

namespace sinter::bench {
namespace {

constexpr int64_t moe_width = 512;
constexpr int64_t moe_hidden = 2048;
constexpr int64_t chosen = 2;
constexpr double spare = 1.25;

/// Where tokens go, as matrices. Tokens beyond an expert's seats are not taken; the residual still carries them.
struct Routing {
  at::Tensor dispatch;  ///< b8[tokens, experts * seats]: the token takes that seat
  at::Tensor combine;   ///< [tokens, experts * seats]: the weight of what that seat gives back
};

struct MoeImpl : torch::nn::Module {
  explicit MoeImpl(int64_t expert_count) : experts(expert_count) {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({moe_width})));
    router = register_module("router", torch::nn::Linear(torch::nn::LinearOptions(moe_width, experts).bias(false)));
    w1 = register_parameter("w1", torch::empty({experts, moe_width, moe_hidden}));
    w2 = register_parameter("w2", torch::empty({experts, moe_hidden, moe_width}));
    randomise(*this);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor tokens = norm->forward(x).flatten(0, 1);
    const auto share = static_cast<double>(chosen * tokens.size(0)) / static_cast<double>(experts);
    const auto seats = static_cast<int64_t>(std::ceil(spare * share));
    const Routing routing = route(tokens, seats);
    const at::Tensor taken = at::matmul(routing.dispatch.to(x.scalar_type()).t(), tokens);
    const at::Tensor inner = at::gelu(at::bmm(taken.view({experts, seats, moe_width}), w1));
    const at::Tensor given = at::bmm(inner, w2).view({experts * seats, moe_width});
    return x + at::matmul(routing.combine, given).view_as(x);
  }

  int64_t experts;
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Linear router{nullptr};
  at::Tensor w1, w2;

 private:
  /// First choices are seated before second ones, and each in the order of the tokens.
  Routing route(const at::Tensor& tokens, int64_t seats) {
    const int64_t count = tokens.size(0);
    const auto whole = tokens.options().dtype(at::kLong);
    const auto [best, expert] = router->forward(tokens).softmax(-1).topk(chosen, -1);
    const at::Tensor weight = best / best.sum(-1, /*keepdim=*/true);
    const at::Tensor wants = expert.t().flatten().unsqueeze(-1) == at::arange(experts, whole);
    const at::Tensor place = ((wants.cumsum(0) - 1) * wants).sum(-1);
    const at::Tensor seat = place.unsqueeze(-1) == at::arange(seats, whole);
    const at::Tensor seated = wants.unsqueeze(-1).logical_and(seat.unsqueeze(1)).view({chosen, count, experts * seats});
    return {.dispatch = seated.any(0), .combine = (seated * weight.t().unsqueeze(-1)).sum(0)};
  }
};

}  // namespace

Model make_moe(const Settings& settings) {
  auto module = std::make_shared<MoeImpl>(integer_of(settings, "experts"));
  module->eval();
  return {module, [module](const std::vector<at::Tensor>& inputs) { return module->forward(inputs.at(0)); }};
}

}  // namespace sinter::bench
