#include <ATen/ATen.h>

#include "api_test.h"

namespace sinter::test {
namespace {

using at::Tensor;

/// A program of one tensor argument, f32[4,6], that any user may write.
struct Program {
  const char* name;
  std::vector<Tensor> (*run)(const Tensor& x);
};

std::vector<Tensor> normalise(const Tensor& x) {
  const auto mean = x.mean(-1, true);
  const auto variance = (x - mean).pow(2).mean(-1, true);
  return {(x - mean) / at::sqrt(variance + 1e-5), mean, variance};
}

std::vector<Tensor> in_place_on_intermediates(const Tensor& x) {
  auto y = x * 2;
  y.add_(1).mul_(x).relu_();
  auto z = y.clone();
  z.select(0, 1).fill_(3);
  z.slice(1, 2, 4).sub_(y.slice(1, 0, 2));
  return {y, z};
}

std::vector<Tensor> write_through_a_view(const Tensor& x) {
  auto y = x + 0.5;
  auto view = y.t();
  view.mul_(2);
  y.view({-1}).narrow(0, 3, 5).zero_();
  return {y, view, y.sum()};
}

std::vector<Tensor> index_assignment(const Tensor& x) {
  auto y = x.clone();
  y.index_put_({at::arange(2)}, at::zeros({6}));
  y.masked_fill_(y > 0.5, -1);
  return {y, x.index({at::tensor({3, 0, 1})}), x.index_select(1, at::tensor({5, 2}))};
}

std::vector<Tensor> pieces(const Tensor& x) {
  auto parts = x.chunk(2, 1);
  auto rows = x.unbind(0);
  return {at::cat({parts[1], parts[0] * 2}, 1), at::stack({rows[0], rows[3], rows[1] + rows[2]}), parts[0]};
}

std::vector<Tensor> attention(const Tensor& x) {
  const auto heads = x.view({1, 4, 2, 3}).transpose(1, 2);
  const auto y = at::scaled_dot_product_attention(heads, heads * 0.5, heads + 1);
  return {y, at::softmax(x, 1), at::log_softmax(x, 0), at::layer_norm(x, {6})};
}

std::vector<Tensor> products(const Tensor& x) {
  return {at::matmul(x, x.t()), at::einsum("ij,kj->ik", {x, x * 2}), at::linear(x, at::ones({3, 6}), at::ones({3})),
          at::bmm(x.view({2, 2, 6}), x.view({2, 6, 2}))};
}

std::vector<Tensor> selections(const Tensor& x) {
  const auto [values, indices] = x.topk(3, 1);
  const auto [sorted, order] = x.sort(0);
  return {values, indices, sorted, order, x.argmax(1), x.cumsum(1), at::where(x > 0, x, -x), x.gather(1, indices)};
}

std::vector<Tensor> images(const Tensor& x) {
  const auto image = x.view({1, 1, 4, 6});
  return {at::max_pool2d(image, 2),
          at::avg_pool2d(image, 2),
          at::adaptive_avg_pool2d(image, {1, 1}),
          at::upsample_nearest2d(image, std::vector<int64_t>{8, 12}),
          at::constant_pad_nd(image, {1, 1, 2, 0}, 3),
          at::conv2d(image, at::ones({2, 1, 3, 3}), {}, 1, 1)};
}

std::vector<Tensor> movements(const Tensor& x) {
  return {x.flip(0),
          x.roll(2, 1),
          x.expand({3, 4, 6}).sum(0),
          x.unfold(1, 2, 2),
          x.t().contiguous(),
          x.repeat({2, 1}),
          x.permute({1, 0}).reshape({4, 6}),
          x.diagonal(),
          x.tril(),
          x.unsqueeze(1).squeeze(1)};
}

std::vector<Tensor> numbers(const Tensor& x) {
  const auto i = (x * 100).to(at::kInt);
  const auto l = i.to(at::kLong);
  const auto b = x > 0;
  return {i + 1,
          l / 3,
          l.remainder(7),
          l.floor_divide(-4),
          b.logical_not(),
          b + i,
          i.to(at::kByte),
          at::bitwise_xor(i, 5),
          l.to(at::kHalf) + x.to(at::kHalf),
          b.to(at::kFloat) * x,
          (i > 3) & b,
          at::pow(x, 3),
          at::pow(2, x),
          l.to(at::kDouble).sqrt()};
}

std::vector<Tensor> unusual_values(const Tensor& x) {
  const auto y = x / at::zeros_like(x);
  return {y,           y.isnan(), at::nan_to_num(y), y.clamp(-1, 1), at::fmod(x, 0.3), at::atan2(x, x.flip(0)),
          at::sign(x), x.frac()};
}

std::vector<Tensor> reductions(const Tensor& x) {
  return {x.sum(),   x.sum(0), x.amax(1, true), x.std(1),       x.norm(),
          x.prod(1), x.all(),  x.any(1),        x.logsumexp(0), x.var(0, false)};
}

std::vector<Tensor> factories(const Tensor& x) {
  return {at::zeros_like(x),    at::arange(6) + x,         at::full({2}, 3.5),        at::eye(4).matmul(x),
          at::ones({4, 1}) * x, at::linspace(0, 1, 6) * x, x.new_empty({3}).fill_(2), at::tensor({1.5, 2.5})};
}

std::vector<Tensor> complex_numbers(const Tensor& x) {
  const auto spectrum = at::fft_rfft(x);
  return {at::abs(spectrum), at::fft_irfft(spectrum, 6), at::real(spectrum).clone()};
}

std::vector<Tensor> losses(const Tensor& x) {
  const auto target = at::arange(4);
  return {at::cross_entropy_loss(x, target), at::mse_loss(x, at::zeros_like(x)),
          at::binary_cross_entropy_with_logits(x, at::ones_like(x)),
          at::embedding(x, at::tensor({0, 3, 1, 1}).view({2, 2})), at::one_hot(target, 5)};
}

std::vector<Tensor> activations(const Tensor& x) {
  return {at::gelu(x),
          at::gelu(x, "tanh"),
          at::silu(x),
          at::elu(x),
          at::leaky_relu(x),
          at::softplus(x),
          at::hardswish(x),
          at::mish(x),
          at::selu(x),
          at::sigmoid(x),
          at::tanh(x),
          at::hardtanh(x),
          at::relu6(x),
          at::celu(x),
          at::logit(at::sigmoid(x)),
          at::glu(x, 1),
          at::threshold(x, 0.1, 20),
          at::hardsigmoid(x),
          at::log_sigmoid(x),
          at::softshrink(x),
          at::prelu(x, at::full({1}, 0.2))};
}

constexpr Program programs[] = {
    {"normalise", normalise},
    {"in_place_on_intermediates", in_place_on_intermediates},
    {"write_through_a_view", write_through_a_view},
    {"index_assignment", index_assignment},
    {"pieces", pieces},
    {"attention", attention},
    {"products", products},
    {"selections", selections},
    {"images", images},
    {"movements", movements},
    {"numbers", numbers},
    {"unusual_values", unusual_values},
    {"reductions", reductions},
    {"factories", factories},
    {"complex_numbers", complex_numbers},
    {"losses", losses},
    {"activations", activations},
};

class Programs : public ::testing::TestWithParam<Program> {};

/// Calls the compiled program four times with fresh inputs and once more with an old one, against eager.
void follow_eager(const Program& program, Options options) {
  auto fast = compile(program.run, unlimited(std::move(options)));
  const auto first = at::randn({4, 6});
  for (int call = 0; call < 5; ++call) {
    const auto x = call == 4 ? first : at::randn({4, 6});
    const auto compiled = fast(x);
    const auto eager = program.run(x);
    ASSERT_EQ(compiled.size(), eager.size());
    for (size_t i = 0; i < eager.size(); ++i) {
      ASSERT_TRUE(same(compiled[i], eager[i])) << program.name << ", call " << call << ", result " << i << "\n"
                                               << fast.report();
    }
  }
  const auto report = fast.report();
  for (const auto& entry : report.entries) EXPECT_TRUE(entry.internal_error.empty()) << report;
  EXPECT_GE(fast.stats().replayed, 3) << report;
}

TEST_P(Programs, follow_eager_without_gradients) {
  const c10::NoGradGuard no_grad;
  follow_eager(GetParam(), {});
}

TEST_P(Programs, follow_eager_in_inference_mode) {
  const c10::InferenceMode inference;
  follow_eager(GetParam(), {});
}

TEST_P(Programs, follow_eager_with_eager_numerics_and_strict) {
  const c10::NoGradGuard no_grad;
  follow_eager(GetParam(), {.numerics = Numerics::eager, .freeze = true, .strict = true});
}

INSTANTIATE_TEST_SUITE_P(Api, Programs, ::testing::ValuesIn(programs),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace sinter::test
