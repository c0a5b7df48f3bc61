// Attention written out, beside eager and float64. Skips where there is no GPU.
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <torch/nn/modules/activation.h>

#include <limits>
#include <utility>

#include "api_test.h"

namespace sinter::test {
namespace {

using at::Tensor;

constexpr int64_t tokens = 96;
constexpr int64_t heads = 4;
constexpr int64_t width = 128;

Tensor split(const Tensor& x) { return x.view({x.size(0), x.size(1), heads, width / heads}).transpose(1, 2); }

/// Of [batch, tokens, width], with a mask that is added to the scores.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask = {}) {
  Tensor scores = at::matmul(split(query), split(key).transpose(2, 3)) / 5.5;
  if (mask.defined()) scores = scores + mask;
  return at::matmul(at::softmax(scores, -1), split(value)).transpose(1, 2).reshape(query.sizes());
}

class Attention : public Api {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  }

  static Tensor drawn(int64_t batch) {
    return at::randn({batch, tokens, width}, at::TensorOptions(at::kCUDA).dtype(at::kHalf));
  }

  static bool is_found(const Report& report) {
    const auto is_attention = [](const ExternRecord& call) { return call.op == "aten::scaled_dot_product_attention"; };
    return is_generated(report) || std::ranges::any_of(report.entries, [&](const EntryReport& entry) {
             return std::ranges::any_of(entry.externs, is_attention);
           });
  }

  static bool is_generated(const Report& report) {
    const auto is_attention = [](const KernelRecord& kernel) { return kernel.name == "fused_attention"; };
    return std::ranges::any_of(
        report.entries, [&](const EntryReport& entry) { return std::ranges::any_of(entry.kernels, is_attention); });
  }

  /// Compiled calls are as close to float64 as eager ones, or `times` as far, and NaN where they are.
  static void expect_no_more_error(const Tensor& compiled, const Tensor& eager, const Tensor& exact,
                                   double times = 1.05) {
    ASSERT_TRUE(at::equal(compiled.isnan(), eager.isnan()));
    const auto error = [&](const Tensor& found) {
      return (found.to(at::kDouble) - exact).nan_to_num(0).pow(2).mean().sqrt().item<double>();
    };
    EXPECT_LE(error(compiled), error(eager) * times);
  }

 private:
  c10::NoGradGuard no_grad_;
};

TEST_F(Attention, is_one_call_and_no_less_exact) {
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    for (const int64_t batch : {1, 3}) {
      const auto fast =
          compile([](const Tensor& q, const Tensor& k, const Tensor& v) { return attention(q, k, v) * 2; },
                  unlimited({.mode = mode, .strict = true}));
      for (int call = 0; call < 4; ++call) {
        const Tensor q = drawn(batch), k = drawn(batch), v = drawn(batch);
        const Tensor exact = attention(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble)) * 2;
        expect_no_more_error(fast(q, k, v), attention(q, k, v) * 2, exact);
      }
      EXPECT_TRUE(is_found(fast.report())) << fast.report();
    }
  }
}

TEST_F(Attention, with_a_mask_is_nan_where_that_leaves_nothing) {
  constexpr double nothing = -std::numeric_limits<double>::infinity();
  const auto fast = compile([](const Tensor& x, const Tensor& mask) { return attention(x, x, x, mask); },
                            unlimited({.strict = true}));
  for (int call = 0; call < 4; ++call) {
    const Tensor x = drawn(2);
    Tensor mask = at::randn({2, 1, tokens, tokens}, x.options());
    mask.slice(3, 40 + call).fill_(nothing);
    mask.select(2, 7).fill_(nothing);
    mask.select(2, 8).select(2, 1).fill_(std::numeric_limits<double>::infinity());
    const Tensor wide = x.to(at::kDouble);
    expect_no_more_error(fast(x, mask), attention(x, x, x, mask), attention(wide, wide, wide, mask.to(at::kDouble)));
  }
  EXPECT_TRUE(is_found(fast.report())) << fast.report();
}

/// As programs hide what comes later, or padding. 91 keys need rows of the mask that begin at multiples of 16 bytes.
TEST_F(Attention, under_hidden_scores_is_found_and_nan_where_that_leaves_nothing) {
  constexpr double nothing = -std::numeric_limits<double>::infinity();
  const auto run = [](const Tensor& x, const Tensor& y, const Tensor& hidden) {
    const auto scores = [&](double scale) { return at::matmul(split(x), split(y).transpose(2, 3)) * scale; };
    const Tensor filled = at::softmax(scores(0.2).masked_fill(hidden, nothing), -1);
    const Tensor chosen = at::softmax(at::where(hidden.logical_not(), scores(0.3), nothing), -1);
    return at::matmul(filled, split(y)) + at::matmul(chosen, split(y));
  };
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    for (const int64_t keys : {tokens, tokens - 5}) {
      const auto fast = compile(run, unlimited({.mode = mode, .strict = true}));
      for (int call = 0; call < 4; ++call) {
        const Tensor x = drawn(2), y = drawn(2).slice(1, 0, keys);
        Tensor hidden = at::ones({tokens, keys}, x.options().dtype(at::kBool)).triu(1);
        hidden.select(0, 7 + call).fill_(true);
        const Tensor exact = run(x.to(at::kDouble), y.to(at::kDouble), hidden);
        expect_no_more_error(fast(x, y, hidden), run(x, y, hidden), exact);
      }
      EXPECT_TRUE(is_found(fast.report())) << fast.report();
    }
  }
}

/// LibTorch computes it in f32: none of its kernels takes a mask of which rows are one element, repeated.
TEST_F(Attention, under_an_expanded_mask_is_found_and_zero_where_that_leaves_nothing) {
  const auto run = [](const Tensor& x, const Tensor& y, const Tensor& mask) {
    const auto all = mask.expand({x.size(0), 1, tokens, tokens});
    return at::scaled_dot_product_attention(split(x), split(y), split(y), all).transpose(1, 2).reshape(x.sizes());
  };
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    const auto fast = compile(run, unlimited({.mode = mode, .strict = true}));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = drawn(2), y = drawn(2);
      Tensor mask = at::ones({2, 1, tokens, 1}, x.options().dtype(at::kBool));
      mask.slice(2, 10, 20 + call).fill_(false);
      const Tensor eager = run(x, y, mask);
      expect_no_more_error(fast(x, y, mask), eager, run(x.to(at::kDouble), y.to(at::kDouble), mask), 2);
      EXPECT_EQ(fast(x, y, mask).slice(1, 10, 20 + call).count_nonzero().item<int64_t>(), 0);
    }
    EXPECT_TRUE(is_found(fast.report())) << fast.report();
  }
}

/// A bias of a table, as T5 and Swin have it: heads are the last dim in memory.
TEST_F(Attention, with_a_bias_that_lies_across_is_found) {
  const auto run = [](const Tensor& x, const Tensor& y, const Tensor& bias) {
    const auto across = bias.permute({2, 0, 1}).unsqueeze(0);
    return at::scaled_dot_product_attention(split(x), split(y), split(y), across, 0.0, false, 1.0);
  };
  for (const int64_t few : {49, 96}) {
    const auto fast = compile(run, unlimited({.strict = true}));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = drawn(2).slice(1, 0, few) / 3, y = drawn(2).slice(1, 0, few) / 3;
      const Tensor bias = at::randn({few, few, heads}, x.options());
      const auto wide = [](const Tensor& t) { return t.to(at::kDouble); };
      expect_no_more_error(fast(x, y, bias), run(x, y, bias), run(wide(x), wide(y), wide(bias)), 2);
    }
    EXPECT_TRUE(is_found(fast.report())) << few << fast.report();
  }
}

/// Windows of images as Swin has them: a bias by head, and a mask by window in every image.
TEST_F(Attention, of_windows_is_one_generated_kernel) {
  constexpr int64_t images = 3, windows = 4, few = 49;
  const auto run = [](const Tensor& qkv, const Tensor& bias, const Tensor& mask) {
    const Tensor parts = qkv.view({images * windows, few, 3, heads, 32}).permute({2, 0, 3, 1, 4});
    Tensor scores = at::matmul(parts[0] * 0.2, parts[1].transpose(-2, -1)) + bias.unsqueeze(0);
    scores = (scores.view({images, windows, heads, few, few}) + mask.unsqueeze(1).unsqueeze(0)).view(scores.sizes());
    return at::matmul(at::softmax(scores, -1), parts[2]).transpose(1, 2).reshape({images * windows, few, heads * 32});
  };
  for (const at::ScalarType dtype : {at::kHalf, at::kBFloat16}) {
    for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
      const auto fast = compile(run, unlimited({.mode = mode, .strict = true}));
      for (int call = 0; call < 4; ++call) {
        const auto options = at::TensorOptions(at::kCUDA).dtype(dtype);
        const Tensor qkv = at::randn({images * windows, few, 3 * heads * 32}, options);
        const Tensor bias = at::randn({heads, few, few}, options);
        const Tensor mask = at::where(at::randn({windows, few, few}, options) > 0.5, -100.0, 0.0).to(dtype);
        const Tensor exact = run(qkv.to(at::kDouble), bias.to(at::kDouble), mask.to(at::kDouble));
        expect_no_more_error(fast(qkv, bias, mask), run(qkv, bias, mask), exact);
      }
      EXPECT_TRUE(is_generated(fast.report())) << fast.report();
    }
  }
}

TEST_F(Attention, over_few_keys_is_generated_in_the_place_of_libtorchs_kernels) {
  for (const int64_t few : {7, 64}) {
    const auto run = [few](const Tensor& x, const std::optional<Tensor>& bias) {
      const Tensor keys = split(x).slice(2, 0, few);
      return at::scaled_dot_product_attention(split(x), keys, keys, bias).transpose(1, 2);
    };
    using Bias = std::optional<Tensor>;
    for (const bool biased : {false, true}) {
      const auto fast = compile(run, unlimited({.strict = true}));
      for (int call = 0; call < 4; ++call) {
        const Tensor x = drawn(2);
        const Bias bias = biased ? Bias(at::randn({1, heads, tokens, few}, x.options())) : std::nullopt;
        const Tensor exact = run(x.to(at::kDouble), biased ? Bias(bias->to(at::kDouble)) : std::nullopt);
        expect_no_more_error(fast(x, bias), run(x, bias), exact, 1.5);
      }
      EXPECT_TRUE(is_generated(fast.report())) << few << biased << fast.report();
    }
  }
}

/// Vectors that lie across, as convolutions give them: LibTorch computes in f32.
TEST_F(Attention, of_images_with_channels_first_is_found) {
  const auto run = [](const Tensor& x) {
    const auto parts = x.view({x.size(0), 3, heads, 32, tokens}).transpose(-2, -1).unbind(1);
    return at::scaled_dot_product_attention(parts[0], parts[1], parts[2])
        .transpose(-2, -1)
        .reshape({-1, width, tokens});
  };
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    const auto fast = compile(run, unlimited({.mode = mode, .strict = true}));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = at::randn({2, 3 * width, tokens}, at::TensorOptions(at::kCUDA).dtype(at::kHalf));
      expect_no_more_error(fast(x), run(x), run(x.to(at::kDouble)), 2);
    }
    EXPECT_TRUE(is_found(fast.report())) << fast.report();
  }
}

TEST_F(Attention, of_libtorchs_module_is_found) {
  torch::nn::MultiheadAttention layer(width, heads);
  layer->to(at::kCUDA, at::kHalf);
  layer->eval();
  const auto call = [&](const Tensor& x) { return std::get<0>(layer->forward(x, x, x, {}, /*need_weights=*/false)); };
  const auto fast = compile(call, unlimited({.strict = true}));
  for (int turn = 0; turn < 4; ++turn) {
    const Tensor x = drawn(2).transpose(0, 1);
    EXPECT_TRUE(at::allclose(fast(x), call(x), 1e-2, 1e-3));
  }
  EXPECT_TRUE(is_found(fast.report())) << fast.report();
}

/// LibTorch's kernel for f32 leaves what it drew on the CPU where it is not recorded.
TEST_F(Attention, in_f32_with_gradients_is_recorded) {
  const at::AutoGradMode with_gradients(true);
  const auto attend = [](const Tensor& x, double dropout) {
    return at::scaled_dot_product_attention(x * 0.5, x + 1, x * 2, {}, dropout);
  };
  const auto recorded = [](const Report& report) {
    return report.text().find("launched directly") == std::string::npos;
  };
  const auto draw = [] {
    return at::randn({2, heads, tokens, 32}, at::TensorOptions(at::kCUDA)).set_requires_grad(true);
  };
  for (const double dropout : {0.0, 0.5}) {
    const auto run = [&](const Tensor& x) {
      attend(x, dropout).square().sum().backward();
      return std::exchange(x.mutable_grad(), Tensor());
    };
    const auto fast = compile(run, unlimited({.mode = Mode::ReduceOverhead, .strict = true}));
    for (int call = 0; call < 5; ++call) {
      const Tensor x = draw();
      at::manual_seed(call);
      const Tensor found = fast(x);
      at::manual_seed(call);
      EXPECT_TRUE(at::allclose(found, run(x), 1e-4, 1e-4)) << dropout << " call " << call;
    }
    EXPECT_TRUE(recorded(fast.report())) << fast.report();
  }
  const auto forward = [&](const Tensor& x) { return attend(x, 0); };
  const auto fast = compile(forward, unlimited({.mode = Mode::ReduceOverhead, .strict = true}));
  for (int call = 0; call < 5; ++call) {
    const Tensor x = draw();
    fast(x).square().sum().backward();
    const Tensor found = std::exchange(x.mutable_grad(), Tensor());
    forward(x).square().sum().backward();
    EXPECT_TRUE(at::allclose(found, x.grad(), 1e-4, 1e-4)) << call;
  }
  EXPECT_TRUE(recorded(fast.report())) << fast.report();
}

TEST_F(Attention, whose_weights_are_given_too_stays) {
  const auto fast = compile(
      [](const Tensor& x) {
        const Tensor weights = at::softmax(at::matmul(split(x), split(x).transpose(2, 3)), -1);
        return std::pair(weights, at::matmul(weights, split(x)));
      },
      unlimited({.strict = true}));
  for (int call = 0; call < 4; ++call) static_cast<void>(fast(drawn(1)));
  EXPECT_FALSE(is_found(fast.report())) << fast.report();
}

TEST_F(Attention, memory_of_any_address_is_taken) {
  const c10::NoGradGuard no_grad;
  const Tensor memory = at::randn({4 * 2 * 4 * 4 + 3}, at::TensorOptions(at::kCUDA));
  const auto program = [](const Tensor& q, const Tensor& k) {
    return at::scaled_dot_product_attention(q * 1, k * 1, q * 1) + 1;
  };
  auto fast = compile(program, unlimited({}));
  for (int64_t first = 0; first < 4; ++first) {
    const Tensor x = memory.narrow(0, first, 128).view({4, 2, 4, 4});
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x, x + 1), program(x, x + 1), 1e-5)) << first;
  }
  EXPECT_GE(fast.stats().replayed, 8) << fast.report();
}

}  // namespace
}  // namespace sinter::test
