// Convolutions and products that oneDNN computes on the CPU, beside eager and float64.
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/sequential.h>

#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include "accuracy.h"
#include "api_test.h"

namespace sinter::test {
namespace {

using at::Tensor;
namespace nn = torch::nn;

class OneDnn : public Api {
 protected:
  void SetUp() override {
    if (!at::Context::hasMKLDNN()) GTEST_SKIP() << "LibTorch was built without oneDNN";
    at::manual_seed(5);
  }

  static int64_t calls_of(const Report& report, std::string_view op) {
    int64_t calls = 0;
    for (const EntryReport& entry : report.entries) {
      for (const ExternRecord& call : entry.externs) calls += call.op.starts_with(op) ? call.calls : 0;
    }
    return calls;
  }
};

/// As in a residual network; `channels` are also those of the way past the convolutions.
struct BlockImpl : nn::Module {
  explicit BlockImpl(int64_t channels, int64_t groups = 1) {
    const auto filters = nn::Conv2dOptions(channels, channels, 3).padding(1).groups(groups);
    first = register_module("first", nn::Conv2d(filters));
    norm = register_module("norm", nn::BatchNorm2d(channels));
    second = register_module("second", nn::Conv2d(filters));
    norm->running_mean.normal_();
    norm->running_var.uniform_(0.5, 2);
    norm->weight.data().uniform_(0.5, 1.5);
    norm->bias.data().normal_();
  }
  Tensor forward(const Tensor& x) { return at::relu(second->forward(at::silu(norm->forward(first->forward(x)))) + x); }

  nn::Conv2d first{nullptr}, second{nullptr};
  nn::BatchNorm2d norm{nullptr};
};
TORCH_MODULE(Block);

/// The same network in another dtype.
nn::Sequential copy_of(const nn::Sequential& net, at::ScalarType dtype) {
  nn::Sequential copy(Block(24), Block(24, 24), Block(24, 3));
  copy->eval();
  copy->to(dtype);
  for (size_t i = 0; i < net->parameters().size(); ++i) copy->parameters()[i].copy_(net->parameters()[i]);
  for (size_t i = 0; i < net->buffers().size(); ++i) copy->buffers()[i].copy_(net->buffers()[i]);
  return copy;
}

TEST_F(OneDnn, convolutions_take_norms_sums_and_activations_with_them) {
  nn::Sequential net(Block(24), Block(24, 24), Block(24, 3));
  net->eval();
  nn::Sequential exact = copy_of(net, at::kDouble);
  for (const bool freeze : {false, true}) {
    const auto fast = compile(net, unlimited({.freeze = freeze, .strict = true}));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = at::randn({2, 24, 13, 11});
      const Tensor wanted = exact->forward(x.to(at::kDouble));
      EXPECT_LE(error(fast(x), wanted), 1.5 * error(net->forward(x), wanted)) << freeze << ", call " << call;
    }
    EXPECT_EQ(calls_of(fast.report(), "mkldnn::_convolution_pointwise"), freeze ? 6 : 3) << fast.report();
  }
}

TEST_F(OneDnn, sums_are_stored_before_an_activation) {
  const at::NoGradGuard no_grad;
  nn::Conv2d layer(nn::Conv2dOptions(8, 8, 3).padding(1));
  const auto run = [&](const Tensor& x) {
    const Tensor sum = layer->forward(x) + at::tanh(x);
    return at::silu(at::gelu(layer->forward(at::silu(sum)) + x));
  };
  const auto fast = compile(run, unlimited({.freeze = true, .modules = {{"layer", layer.ptr()}}, .strict = true}));
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({2, 8, 9, 9});
    EXPECT_TRUE(same(fast(x), run(x))) << "call " << call;
  }
  EXPECT_EQ(fast.stats().replayed, 3) << fast.report();
  EXPECT_EQ(calls_of(fast.report(), "mkldnn::_convolution_pointwise"), 2) << fast.report();
}

TEST_F(OneDnn, convolutions_pass_on_what_is_no_number) {
  nn::Conv2d layer(nn::Conv2dOptions(8, 16, 3).padding(1));
  layer->eval();
  const std::vector<std::function<Tensor(const Tensor&)>> activations{
      [](const Tensor& x) { return at::relu(x); }, [](const Tensor& x) { return at::silu(x); },
      [](const Tensor& x) { return at::gelu(x); }, [](const Tensor& x) { return at::gelu(x, "tanh"); }};
  for (const auto& activation : activations) {
    const auto run = [&](const Tensor& x) { return activation(layer->forward(x)); };
    const auto fast = compile(run, unlimited({.freeze = true, .modules = {{"layer", layer.ptr()}}, .strict = true}));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = at::randn({2, 8, 9, 9});
      x[0][3][call][4].fill_(std::nan(""));
      x[1][5][4][call].fill_(INFINITY);
      const Tensor found = fast(x), eager = run(x);
      EXPECT_TRUE(at::equal(found.isnan(), eager.isnan())) << "call " << call;
      EXPECT_TRUE(at::equal(found.isinf(), eager.isinf())) << "call " << call;
      EXPECT_TRUE(same(found.nan_to_num(0, 0, 0), eager.nan_to_num(0, 0, 0))) << "call " << call;
    }
  }
}

TEST_F(OneDnn, unfrozen_calls_see_new_weights) {
  nn::Conv2d convolution(nn::Conv2dOptions(8, 16, 3).padding(1));
  nn::Linear linear(144, 96);
  auto run = [=](const Tensor& x) mutable {
    const Tensor image = at::silu(convolution->forward(x));
    return at::gelu(linear->forward(image.flatten(2).reshape({-1, 144})));
  };
  const auto fast = compile(run, unlimited({.strict = true}));
  for (int call = 0; call < 5; ++call) {
    const Tensor x = at::randn({4, 8, 12, 12});
    for (const Tensor& parameter : {convolution->weight, linear->weight}) parameter.data().mul_(1.1);
    for (const Tensor& parameter : {convolution->bias, linear->bias}) parameter.data().normal_();
    EXPECT_TRUE(same(fast(x), run(x))) << "call " << call;
  }
}

/// A sum that is stored into the memory of its summand, while the summand or what lies with it is still needed.
TEST_F(OneDnn, sums_spare_what_is_read_later) {
  nn::Conv2d layer(nn::Conv2dOptions(8, 8, 3).padding(1));
  auto run = [=](const Tensor& x) mutable {
    const Tensor a = layer->forward(x), b = layer->forward(a);
    const Tensor once = layer->forward(b) + a;
    const Tensor twice = layer->forward(once) + once;
    const Tensor seen = b.select(1, 0);
    return std::vector<Tensor>{twice + a, layer->forward(twice) + b, seen.sum()};
  };
  for (const bool freeze : {false, true}) {
    const auto fast = compile(run, unlimited({.freeze = freeze, .modules = {{"layer", layer.ptr()}}, .strict = true}));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = at::randn({2, 8, 10, 10});
      const auto found = fast(x), eager = run(x);
      for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(same(found[i], eager[i])) << freeze << ", result " << i;
    }
  }
}

TEST_F(OneDnn, products_are_as_exact_as_eagers) {
  struct Shape {
    int64_t rows, inner, columns;
  };
  for (const Shape shape : {Shape{64, 96, 80}, Shape{1, 640, 512}, Shape{333, 77, 65}, Shape{512, 256, 40}}) {
    const auto run = [](const Tensor& x, const Tensor& w, const Tensor& turned, const Tensor& b) {
      return at::gelu(at::linear(x, w, b)) + at::matmul(x, turned) + at::matmul(x.neg(), w.t());
    };
    const auto fast = compile(run, unlimited({.strict = true}));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = at::randn({shape.rows, shape.inner}), w = at::randn({shape.columns, shape.inner});
      const Tensor turned = at::randn({shape.inner, shape.columns}), b = at::randn({shape.columns});
      const auto wide = [](const Tensor& tensor) { return tensor.to(at::kDouble); };
      const Tensor exact = run(wide(x), wide(w), wide(turned), wide(b));
      EXPECT_LE(error(fast(x, w, turned, b), exact), 1.5 * error(run(x, w, turned, b), exact)) << shape.rows;
    }
    EXPECT_GT(fast.stats().replayed, 0);
  }
}

TEST_F(OneDnn, products_of_few_large_matrices) {
  const auto run = [](const Tensor& x, const Tensor& w) { return at::gelu(at::bmm(x, w)) + 1; };
  const auto fast = compile(run, unlimited({.strict = true}));
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({3, 80, 256}), w = at::randn({3, 224, 256}).transpose(1, 2);
    EXPECT_TRUE(same(fast(x, w), run(x, w), 1e-4)) << "call " << call;
  }
}

/// Training: gradients of a convolution and of products, in channels-last order where the forward pass is.
TEST_F(OneDnn, gradients_are_eagers) {
  const at::AutoGradMode with_gradients(true);
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(6, 16, 3).padding(1)), nn::BatchNorm2d(16), nn::Functional(at::relu),
                     nn::Conv2d(nn::Conv2dOptions(16, 16, 3).padding(1).groups(16)), nn::Flatten(),
                     nn::Linear(16 * 81, 48));
  auto run = [=](const Tensor& x) mutable {
    net->zero_grad();
    const Tensor loss = net->forward(x).square().mean();
    loss.backward();
    return loss.detach();
  };
  const auto fast = compile(run, unlimited({.modules = {{"net", net.ptr()}}, .strict = true}));
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::randn({8, 6, 9, 9});
    net->train();
    const Tensor eager = run(x);
    std::vector<Tensor> wanted;
    for (const Tensor& parameter : net->parameters()) wanted.push_back(parameter.grad().clone());
    EXPECT_TRUE(same(fast(x), eager)) << "call " << call;
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(same(net->parameters()[i].grad(), wanted[i], 2e-4)) << "call " << call << ", parameter " << i;
    }
  }
}

TEST_F(OneDnn, is_left_out_where_the_user_has_turned_it_off) {
  nn::Conv2d layer(nn::Conv2dOptions(8, 16, 3).padding(1));
  auto run = [=](const Tensor& x) mutable { return at::silu(layer->forward(x)); };
  at::globalContext().setUserEnabledMkldnn(false);
  const auto fast = compile(run, unlimited({.strict = true}));
  for (int call = 0; call < 3; ++call) {
    const Tensor x = at::randn({2, 8, 12, 12});
    EXPECT_TRUE(same(fast(x), run(x))) << "call " << call;
  }
  at::globalContext().setUserEnabledMkldnn(true);
  EXPECT_EQ(calls_of(fast.report(), "mkldnn::"), 0) << fast.report();
}

}  // namespace
}  // namespace sinter::test
