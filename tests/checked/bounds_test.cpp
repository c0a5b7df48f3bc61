// What a function keeps is bounded, and what depends on state alone may be kept.
#include <c10/core/GradMode.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <bit>

#include "checked.h"

namespace sinter::test {
namespace {

class Bounds : public Checked {
  c10::NoGradGuard no_grad_;
};

TEST_F(Bounds, ten_thousand_branches_are_all_right_and_the_last_ones_are_kept) {
  auto options = checked();
  options.compile_budget = 0.5;  // most calls run as eager runs them
  auto fast = compile(
      [](const at::Tensor& x, int64_t bits) {
        auto y = x;
        for (int bit = 0; bit < 14; ++bit) y = (bits >> bit & 1) != 0 ? y + 1 : y - 2;
        return y;
      },
      options);
  const auto x = at::ones({4});
  for (int64_t bits = 0; bits < 10000; ++bits) {
    const auto ones = std::popcount(static_cast<uint64_t>(bits));
    ASSERT_TRUE(same(fast(x, bits), x + (ones - 2 * (14 - ones)))) << bits;
  }
  EXPECT_LE(fast.report().entries.size(), 512);
}

TEST_F(Bounds, compiled_segments_make_room_by_last_use) {
  auto options = checked();
  options.dynamic = false;
  auto fast = compile([](const at::Tensor& x) { return x.cumsum(0); }, options);  // no kernel is built
  for (int64_t size = 2; size < 602; ++size) {
    for (int call = 0; call < 2; ++call) fast(at::ones({size}));
    for (int call = 0; call < 2; ++call) fast(at::ones({700}));
  }
  const auto report = fast.report();
  EXPECT_EQ(report.entries.size(), 512);
  const auto is_kept = [&](const char* signature) {
    return std::ranges::any_of(report.entries, [&](const auto& entry) { return entry.signature == signature; });
  };
  EXPECT_TRUE(is_kept("f32[700]")) << "used all the time";
  EXPECT_TRUE(is_kept("f32[601]"));
  EXPECT_FALSE(is_kept("f32[2]"));
  EXPECT_TRUE(same(fast(at::ones({2})), at::ones({2}).cumsum(0)));
}

/// Convolution, batch norm and ReLU, and a linear layer at the end.
struct Net {
  torch::nn::Conv2d conv{torch::nn::Conv2dOptions(3, 8, 3).bias(false)};
  torch::nn::BatchNorm2d norm{8};
  torch::nn::Linear last{8, 4};

  Net() {
    norm->eval();
    norm->running_mean.uniform_();
    norm->running_var.uniform_(0.5, 2);
  }
  at::Tensor operator()(const at::Tensor& x) { return last(at::relu(norm(conv(x))).mean({2, 3})); }
};

TEST_F(Bounds, what_depends_on_frozen_state_alone_is_computed_once) {
  Net net;
  auto options = checked();
  const auto image = at::randn({2, 3, 8, 8});
  const auto work_of = [&](const Options& how) {
    auto fast = compile([&](const at::Tensor& x) { return net(x) + net.conv->weight.exp().sum(); }, how);
    for (int call = 0; call < 4; ++call) {
      EXPECT_TRUE(same(fast(image), net(image) + net.conv->weight.exp().sum(), 1e-4));
    }
    int64_t launches = 0;
    for (const auto& kernel : fast.report().entries.at(0).kernels) launches += kernel.launches;
    return launches;
  };
  const int64_t computed_anew = work_of(options);
  options.freeze = true;
  EXPECT_LT(work_of(options), computed_anew);
}

TEST_F(Bounds, a_frozen_function_sees_another_tensor_in_the_place_of_its_state) {
  Net net;
  auto options = checked();
  options.freeze = true;
  auto fast = compile([&](const at::Tensor& x) { return net(x); }, options);
  const auto image = at::randn({2, 3, 8, 8});
  for (int call = 0; call < 12; ++call) {
    if (call % 4 == 3) net.conv->weight = at::randn({8, 3, 3, 3});
    if (call == 9) net.last->bias = at::randn({4});
    EXPECT_TRUE(same(fast(image), net(image), 1e-4)) << "call " << call;
  }
}

TEST_F(Bounds, arguments_of_a_frozen_function_are_no_state) {
  auto options = checked();
  options.freeze = true;
  const auto state = at::randn({4});
  auto fast = compile([&](const at::Tensor& x) { return x.exp() * state.exp() + at::scalar_tensor(2).exp(); }, options);
  const auto x = at::randn({4});
  for (int call = 0; call < 6; ++call) {
    x.add_(1);
    EXPECT_TRUE(same(fast(x), x.exp() * state.exp() + at::scalar_tensor(2).exp())) << "call " << call;
  }
}

}  // namespace
}  // namespace sinter::test
