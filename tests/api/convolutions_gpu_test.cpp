// Convolutions that take what follows with them, or whose groups are padded, beside eager and float64.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose1d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/max_pool3d.h>
#include <ATen/ops/silu.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "accuracy.h"
#include "where.h"

namespace sinter::test {
namespace {

using at::Tensor;
namespace nn = torch::nn;

/// Of a residual network: two convolutions with norms, and a third on the way past them where the sizes change.
struct ResidualBlockImpl : nn::Module {
  ResidualBlockImpl(int64_t in, int64_t out, int64_t stride) {
    const auto filters = [&](int64_t from, int64_t size, int64_t step) {
      return nn::Conv2d(nn::Conv2dOptions(from, out, size).stride(step).padding(size / 2).bias(false));
    };
    first = register_module("first", nn::Sequential(filters(in, 3, stride), nn::BatchNorm2d(out)));
    second = register_module("second", nn::Sequential(filters(out, 3, 1), nn::BatchNorm2d(out)));
    if (in != out) past = register_module("past", nn::Sequential(filters(in, 1, stride), nn::BatchNorm2d(out)));
    for (const auto& module : modules(/*include_self=*/false)) {
      if (const auto* norm = module->as<nn::BatchNorm2d>()) set_statistics(*norm);
    }
  }

  Tensor forward(const Tensor& x) {
    const Tensor y = second->forward(at::relu(first->forward(x)));
    return at::relu(y + (past.is_empty() ? x : past->forward(x)));
  }

  static void set_statistics(const nn::BatchNorm2dImpl& norm) {
    norm.running_mean.normal_(0, 2);
    norm.running_var.uniform_(0.5, 2);
    norm.weight.data().uniform_(0.5, 1.5);
    norm.bias.data().normal_();
  }

  nn::Sequential first{nullptr}, second{nullptr}, past{nullptr};
};
TORCH_MODULE(ResidualBlock);

nn::Sequential residual_network() {
  nn::Sequential net(ResidualBlock(32, 32, 1), ResidualBlock(32, 64, 2));
  net->eval();
  return net;
}

class Convolutions : public OnDevice {
 protected:
  [[nodiscard]] static Tensor random(at::IntArrayRef sizes, at::ScalarType dtype = at::kHalf) {
    return at::randn(sizes, at::TensorOptions(at::kCUDA)).to(dtype);
  }
  [[nodiscard]] static Options options(bool freeze = false) {
    return unlimited({.mode = GetParam().mode, .freeze = freeze, .strict = true});
  }

 private:
  c10::NoGradGuard no_grad_;
};

TEST_P(Convolutions, take_frozen_norms_summands_and_relu_with_them) {
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    nn::Sequential net = residual_network(), exact = residual_network();
    net->to(at::kCUDA, dtype);
    exact->to(at::kCUDA, at::kDouble);
    for (size_t i = 0; i < net->parameters().size(); ++i) exact->parameters()[i].copy_(net->parameters()[i]);
    for (size_t i = 0; i < net->buffers().size(); ++i) exact->buffers()[i].copy_(net->buffers()[i]);
    const auto fast = compile(net, options(/*freeze=*/true));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = random({3, 32, 17, 15}, dtype);
      const Tensor wanted = exact->forward(x.to(at::kDouble));
      // Filters are rounded once more, after the norms' scale.
      EXPECT_LE(error(fast(x), wanted), 1.5 * error(net->forward(x), wanted)) << dtype << ", call " << call;
    }
    const Report report = fast.report();
    EXPECT_EQ(calls_of(report, "aten::cudnn_convolution_relu"), 2) << report;
    EXPECT_EQ(calls_of(report, "aten::cudnn_convolution_add_relu"), 2) << report;
    EXPECT_EQ(calls_of(report, "aten::convolution"), 1) << report;
  }
}

TEST_P(Convolutions, with_a_bias_and_relu_see_new_weights) {
  nn::Conv2d layer(nn::Conv2dOptions(16, 24, 3).padding(1));
  layer->to(at::kCUDA, at::kHalf);
  const auto fast = compile([layer](const Tensor& x) mutable { return at::relu(layer->forward(x)); }, options());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = random({2, 16, 9, 9});
    layer->bias.data().normal_();
    layer->weight.data().mul_(1.25);
    EXPECT_TRUE(same(fast(x), at::relu(layer->forward(x)))) << "call " << call;
  }
  EXPECT_EQ(calls_of(fast.report(), "aten::cudnn_convolution_relu"), 1) << fast.report();
}

TEST_P(Convolutions, with_relu_pass_on_what_is_no_number) {
  const auto run = [](const Tensor& x, const Tensor& w, const Tensor& b) { return at::relu(at::conv2d(x, w, b)); };
  const auto fast = compile(run, options());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = random({2, 16, 9, 9}), w = random({16, 16, 3, 3}), b = random({16});
    x[0][3][call][4].fill_(std::nan(""));
    x[1][5][4][call].fill_(INFINITY);
    const Tensor found = fast(x, w, b), eager = run(x, w, b);
    EXPECT_TRUE(at::equal(found.isnan(), eager.isnan())) << "call " << call;
    EXPECT_TRUE(at::equal(found.isinf(), eager.isinf())) << "call " << call;
    const Tensor exact = run(x.to(at::kDouble), w.to(at::kDouble), b.to(at::kDouble));
    const auto finite = [&](const Tensor& all) { return all.masked_select(eager.isfinite()); };
    EXPECT_LE(error(finite(found), finite(exact)), 1.05 * error(finite(eager), finite(exact))) << "call " << call;
  }
  EXPECT_EQ(calls_of(fast.report(), "aten::cudnn_convolution_relu"), 1) << fast.report();
}

TEST_P(Convolutions, over_padded_groups_are_as_exact_as_eagers) {
  struct Shape {
    int64_t width, groups, batch, size;
  };
  for (const Shape shape : {Shape{24, 3, 2, 9}, Shape{2, 6, 2, 9}, Shape{12, 4, 1, 7}, Shape{40, 6, 1, 8},
                            Shape{20, 2, 2, 5}, Shape{120, 2, 16, 24}}) {
    const int64_t channels = shape.width * shape.groups;
    const auto run = [&](const Tensor& x, const Tensor& w) {
      return at::conv2d(x.sigmoid(), w, {}, 1, 1, 1, shape.groups) + 0.5;
    };
    const auto fast = compile(run, options());
    for (int call = 0; call < 4; ++call) {
      const Tensor x = random({shape.batch, channels, shape.size, shape.size});
      const Tensor w = random({channels, shape.width, 3, 3}) / 8;
      const Tensor exact = run(x.to(at::kDouble), w.to(at::kDouble));
      EXPECT_LE(error(fast(x, w), exact), 1.1 * error(run(x, w), exact)) << shape.width << ", call " << call;
    }
    EXPECT_GT(fast.stats().replayed, 0);
  }
}

/// Patches that tile the image, channels that are no multiple of eight, one tap a channel, groups of pixels.
TEST_P(Convolutions, that_become_others_are_as_exact_as_eagers) {
  struct Shape {
    int64_t in, out, taps, stride, padding, groups;
  };
  for (const Shape shape :
       {Shape{3, 64, 16, 16, 0, 1}, Shape{3, 40, 7, 7, 0, 1}, Shape{18, 26, 3, 1, 1, 1}, Shape{20, 36, 1, 1, 0, 1},
        Shape{16, 16, 1, 2, 0, 16}, Shape{48, 96, 1, 1, 0, 3}, Shape{64, 32, 1, 2, 0, 2}}) {
    const auto run = [&](const Tensor& x, const Tensor& w, const Tensor& b) {
      return at::relu(at::conv2d(x.sigmoid(), w, b, shape.stride, shape.padding, 1, shape.groups)) + 0.5;
    };
    const auto fast = compile(run, options());
    for (int call = 0; call < 4; ++call) {
      const Tensor x = random({2, shape.in, 33, 34});
      const Tensor w = random({shape.out, shape.in / shape.groups, shape.taps, shape.taps}) / shape.taps;
      const Tensor b = random({shape.out});
      const Tensor exact = run(x.to(at::kDouble), w.to(at::kDouble), b.to(at::kDouble));
      EXPECT_LE(error(fast(x, w, b), exact), 1.1 * error(run(x, w, b), exact))
          << shape.in << " to " << shape.out << " channels, " << shape.taps << " taps, call " << call;
    }
    EXPECT_GT(fast.stats().replayed, 0);
  }
}

/// Some channels go through a depthwise convolution, some through ReLU, and two halves are added.
TEST_P(Convolutions, are_split_by_channels) {
  const auto run = [](const Tensor& x, const Tensor& w, const Tensor& v) {
    const Tensor image = at::conv2d(x, w, {}, 1, 1);
    const auto parts = image.split_with_sizes({16, 24, 24}, 1);
    const Tensor near = at::conv2d(parts[0], v, {}, 1, 1, 1, 16);
    const Tensor both = at::cat({near, at::relu(parts[1]), parts[2]}, 1);
    return both.reshape({both.size(0), 2, 32, both.size(2), both.size(3)}).sum(1).relu();
  };
  const auto fast = compile(run, options());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = random({4, 32, 28, 28});
    const Tensor w = random({64, 32, 3, 3}) / 16, v = random({16, 1, 3, 3}) / 3;
    const Tensor exact = run(x.to(at::kDouble), w.to(at::kDouble), v.to(at::kDouble));
    EXPECT_LE(error(fast(x, w, v), exact), 1.1 * error(run(x, w, v), exact)) << "call " << call;
  }
  EXPECT_GT(fast.stats().replayed, 0);
}

/// As models of sound have them: strided, grouped with long kernels, causal and depthwise, transposed.
TEST_P(Convolutions, over_lines_are_as_exact_as_eagers) {
  const auto run = [](const Tensor& x, const Tensor& w, const Tensor& grouped, const Tensor& taps, const Tensor& up) {
    const Tensor coarse = at::gelu(at::conv1d(x, w, {}, 2));
    const Tensor placed = coarse + at::conv1d(coarse, grouped, {}, 1, 16, 1, 4).slice(2, 0, coarse.size(2));
    const Tensor past = at::conv1d(placed, taps, {}, 1, 3, 1, 64).slice(2, 0, coarse.size(2)).sigmoid();
    return at::conv_transpose1d(placed * past, up, {}, 2).transpose(1, 2).contiguous();
  };
  const auto fast = compile(run, options());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = random({4, 32, 203}), w = random({64, 32, 3}) / 10, grouped = random({64, 16, 32}) / 22;
    const Tensor taps = random({64, 1, 4}) / 2, up = random({64, 32, 4}) / 11;
    const auto wide = [](const Tensor& t) { return t.to(at::kDouble); };
    const Tensor exact = run(wide(x), wide(w), wide(grouped), wide(taps), wide(up));
    const Tensor found = fast(x, w, grouped, taps, up), eager = run(x, w, grouped, taps, up);
    EXPECT_EQ(found.strides(), eager.strides());
    EXPECT_LE(error(found, exact), 1.1 * error(eager, exact)) << "call " << call;
  }
  EXPECT_GT(fast.stats().replayed, 0);
}

/// As models of videos and of medical images have them, and the training of these.
TEST_P(Convolutions, over_volumes_are_as_exact_as_eagers_with_their_gradients) {
  const auto see = [](const Tensor& x, const Tensor& w, const Tensor& v) {
    const Tensor coarse = at::max_pool3d(at::conv3d(x, w, {}, 1, 1).relu(), 2);
    const Tensor fine = at::conv_transpose3d(coarse, v, {}, 2);
    return at::cat({fine, x}, 1) * coarse.mean(at::IntArrayRef{2, 3, 4}, /*keepdim=*/true).sigmoid();
  };
  const auto learn = [&](const Tensor& x, const Tensor& w, const Tensor& v) {
    see(x, w, v).square().mean().backward();
    return std::exchange(w.mutable_grad(), Tensor());
  };
  const auto leaf = [](const Tensor& t) { return t.detach().clone().requires_grad_(); };
  const auto seen = compile(see, options());
  const auto learnt = compile(learn, options());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = random({2, 16, 8, 20, 20}), w = random({32, 16, 3, 3, 3}) / 20, v = random({32, 16, 2, 2, 2}) / 6;
    const Tensor wide_x = x.to(at::kDouble), wide_w = w.to(at::kDouble), wide_v = v.to(at::kDouble);
    const Tensor eager = see(x, w, v), found = seen(x, w, v);
    EXPECT_EQ(found.strides(), eager.strides());
    const Tensor exact = see(wide_x, wide_w, wide_v);
    EXPECT_LE(error(found, exact), 1.1 * error(eager, exact)) << "call " << call;
    const at::AutoGradMode with_gradients(true);
    const Tensor exact_gradient = learn(wide_x, leaf(wide_w), wide_v);
    const Tensor gradient = learnt(x, leaf(w), v);
    EXPECT_LE(error(gradient, exact_gradient), 1.5 * error(learn(x, leaf(w), v), exact_gradient)) << "call " << call;
  }
  EXPECT_GT(seen.stats().replayed, 0);
  EXPECT_GT(learnt.stats().replayed, 0);
}

/// cuDNN would multiply them in TF32 if the image lay channels-last.
TEST_P(Convolutions, of_patches_in_f32_are_as_exact_as_eagers_with_their_gradients) {
  const at::AutoGradMode with_gradients(true);
  const auto run = [](const Tensor& x, const Tensor& w) {
    at::gelu(at::conv2d(x, w, {}, 16)).square().sum().backward();
    return std::exchange(w.mutable_grad(), Tensor());
  };
  const auto fast = compile(run, options());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = random({2, 3, 224, 224}, at::kFloat), w = random({768, 3, 16, 16}, at::kFloat) / 28;
    const auto leaf = [](const Tensor& t, at::ScalarType dtype) { return t.to(dtype).detach().requires_grad_(); };
    const Tensor exact = run(x.to(at::kDouble), leaf(w, at::kDouble));
    const Tensor found = fast(x, leaf(w, at::kFloat)), eager = run(x, leaf(w, at::kFloat));
    EXPECT_LE(error(found, exact), 1.5 * error(eager, exact)) << "call " << call;
  }
  EXPECT_GT(fast.stats().replayed, 0);
}

/// Groups of channels, which lie side by side where convolutions are channels-last, and tokens that are an image for a
/// depthwise convolution alone.
TEST_P(Convolutions, around_group_norms_and_of_tokens_are_as_exact_as_eagers) {
  using Weights = std::array<Tensor, 4>;
  const auto network = [](const Tensor& x, const Weights& weights) {
    const auto& [filters, scale, shift, taps] = weights;
    const Tensor groups = at::silu(at::group_norm(at::conv2d(x, filters, {}, 1, 1), 8, scale, shift));
    const Tensor y = at::conv2d(groups, filters, {}, 1, 1);
    const Tensor tokens = at::layer_norm(y.flatten(2).transpose(1, 2), {160}, scale, shift);
    const Tensor image = tokens.transpose(1, 2).view(x.sizes()).contiguous();
    return at::layer_norm(at::conv2d(image, taps, {}, 1, 1, 1, 160).flatten(2).transpose(1, 2), {160}, scale, shift);
  };
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    const Weights weights{random({160, 160, 3, 3}, dtype) * 0.03, random({160}, dtype), random({160}, dtype),
                          random({160, 1, 3, 3}, dtype)};
    Weights wide;
    std::ranges::transform(weights, wide.begin(), [](const Tensor& weight) { return weight.to(at::kDouble); });
    const auto fast =
        compile([&](const Tensor& x) { return network(x, weights); }, options(/*freeze=*/dtype == at::kHalf));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = random({2, 160, 48, 40}, dtype);
      const Tensor found = fast(x), eager = network(x, weights), exact = network(x.to(at::kDouble), wide);
      ASSERT_EQ(found.strides(), eager.strides());
      EXPECT_LE(error(found, exact), 1.1 * error(eager, exact)) << dtype << ", call " << call;
    }
    EXPECT_GT(fast.stats().replayed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, Convolutions,
                         ::testing::Values(Where{"launched", at::kCUDA, Mode::Default},
                                           Where{"graph", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

}  // namespace
}  // namespace sinter::test
