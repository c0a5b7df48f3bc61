#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "where.h"

/// Products that are padded, or given their bias, before the library runs them, beside eager and float64.
namespace sinter::test {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

class Products : public OnDevice {
 protected:
  [[nodiscard]] Tensor random(at::IntArrayRef sizes, at::ScalarType dtype = at::kHalf) const {
    return at::randn(sizes, at::TensorOptions(at::kCUDA)).to(dtype);
  }
  [[nodiscard]] Options options() const { return unlimited({.mode = GetParam().mode, .strict = true}); }
};

/// The largest distance from float64, in units of the largest number there.
double distance(const Tensor& found, const Tensor& exact) {
  return ((found.to(at::kDouble) - exact).abs().max() / exact.abs().max()).item<double>();
}

/// Attention as it is written out over windows: [windows, tokens, 3 * heads * 32] and a bias.
std::pair<Tensor, Tensor> attention_and_weights(const Tensor& qkv, const Tensor& bias, int64_t heads) {
  const int64_t windows = qkv.size(0), tokens = qkv.size(1);
  const Tensor parts = qkv.reshape({windows, tokens, 3, heads, 32}).permute({2, 0, 3, 1, 4});
  const Tensor scores = (parts[0] * 0.1767).matmul(parts[1].transpose(-2, -1)) + bias;
  const Tensor weights = scores.softmax(-1);
  return {weights.matmul(parts[2]).transpose(1, 2).reshape({windows, tokens, heads * 32}), weights};
}

Tensor attention(const Tensor& qkv, const Tensor& bias, int64_t heads) {
  return attention_and_weights(qkv, bias, heads).first;
}

TEST_P(Products, attention_over_49_tokens_is_as_exact_as_eagers) {
  const at::NoGradGuard no_grad;
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    const auto fast = compile([](const Tensor& x, const Tensor& bias) { return attention(x, bias, 3); }, options());
    for (int call = 0; call < 5; ++call) {
      const Tensor x = random({256, 49, 288}, dtype), bias = random({3, 49, 49}, dtype);
      const Tensor found = fast(x, bias), eager = attention(x, bias, 3);
      const Tensor exact = attention(x.to(at::kDouble), bias.to(at::kDouble), 3);
      ASSERT_EQ(found.strides(), eager.strides());
      EXPECT_LE(distance(found, exact), 2 * distance(eager, exact)) << dtype << ", call " << call;
    }
    EXPECT_GT(fast.stats().replayed, 0);
    EXPECT_NE(fast.report().text().find("fused_attention"), std::string::npos) << fast.report();
  }
}

TEST_P(Products, attention_whose_weights_are_read_has_padded_products) {
  const at::NoGradGuard no_grad;
  const auto run = [](const Tensor& x, const Tensor& bias) { return attention_and_weights(x, bias, 3); };
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    const auto fast = compile(run, options());
    for (int call = 0; call < 5; ++call) {
      const Tensor x = random({256, 49, 288}, dtype), bias = random({3, 49, 49}, dtype);
      const auto [found, weights] = fast(x, bias);
      const Tensor exact = attention(x.to(at::kDouble), bias.to(at::kDouble), 3);
      EXPECT_LE(distance(found, exact), 2 * distance(attention(x, bias, 3), exact)) << dtype << ", call " << call;
    }
    EXPECT_NE(fast.report().text().find("join"), std::string::npos) << "padded\n" << fast.report();
  }
}

/// A mask that repeats over windows as well, the softmax in f32, and the gradients of everything.
TEST_P(Products, attention_over_49_tokens_has_gradients) {
  const auto run = [](const Tensor& x, const Tensor& bias, const Tensor& mask, const Tensor& dy) {
    const Tensor leaf = x.detach().requires_grad_(), b = bias.detach().requires_grad_();
    const int64_t windows = x.size(0), heads = bias.size(0);
    const Tensor parts = leaf.reshape({windows, 49, 3, heads, 32}).permute({2, 0, 3, 1, 4});
    Tensor scores = (parts[0] * 0.1767).matmul(parts[1].transpose(-2, -1)) + b;
    scores = scores.view({windows / 4, 4, heads, 49, 49}) + mask.unsqueeze(1);
    const Tensor weights = scores.view({windows, heads, 49, 49})
                               .softmax(-1, at::promoteTypes(x.scalar_type(), at::kFloat))
                               .to(x.scalar_type());
    const Tensor y = weights.matmul(parts[2]).transpose(1, 2).reshape(dy.sizes());
    Tensors out = torch::autograd::grad({y}, {leaf, b}, {dy});
    out.push_back(y.detach());
    return out;
  };
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    const auto fast = compile(run, options());
    for (int call = 0; call < 5; ++call) {
      const Tensor x = random({256, 49, 288}, dtype), bias = random({3, 49, 49}, dtype);
      const Tensor mask = at::where(random({4, 49, 49}) > 1, -100.0, 0.0).to(dtype);
      const Tensor dy = random({256, 49, 96}, dtype);
      const Tensors found = fast(x, bias, mask, dy), eager = run(x, bias, mask, dy);
      const Tensors exact = run(x.to(at::kDouble), bias.to(at::kDouble), mask.to(at::kDouble), dy.to(at::kDouble));
      for (size_t i = 0; i < exact.size(); ++i) {
        ASSERT_EQ(found[i].strides(), eager[i].strides());
        EXPECT_LE(distance(found[i], exact[i]), 2 * distance(eager[i], exact[i])) << dtype << ", result " << i;
      }
    }
    EXPECT_GT(fast.stats().replayed, 0);
    EXPECT_NE(fast.report().text().find("join"), std::string::npos) << "padded\n" << fast.report();
  }
}

TEST_P(Products, a_row_without_a_finite_score_is_nan_as_in_eager) {
  const at::NoGradGuard no_grad;
  const auto fast = compile([](const Tensor& x, const Tensor& bias) { return attention(x, bias, 3); }, options());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = random({256, 49, 288});
    Tensor bias = random({3, 49, 49});
    bias[1][call].fill_(-std::numeric_limits<double>::infinity());
    bias[2][7][3].fill_(-std::numeric_limits<double>::infinity());
    const Tensor found = fast(x, bias), eager = attention(x, bias, 3);
    const Tensor exact = attention(x.to(at::kDouble), bias.to(at::kDouble), 3).nan_to_num();
    EXPECT_TRUE(found.isnan().equal(eager.isnan()));
    EXPECT_LE(distance(found.nan_to_num(), exact), 2 * distance(eager.nan_to_num(), exact));
  }
}

TEST_P(Products, a_bias_is_added_by_the_library_where_it_stands_alone) {
  const at::NoGradGuard no_grad;
  const Tensor weight = random({96, 288}), bias = random({288});
  const auto program = [&](const Tensor& x) { return (x.matmul(weight) + bias).cumsum(1); };
  const auto fast = compile(program, options());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = random({16, 49, 96});
    const Tensor found = fast(x), eager = program(x);
    const Tensor exact = (x.to(at::kDouble).matmul(weight.to(at::kDouble)) + bias.to(at::kDouble)).cumsum(1);
    EXPECT_LE(distance(found, exact), 2 * distance(eager, exact));
  }
  const std::string text = fast.report().text();
  EXPECT_NE(text.find("addmm"), std::string::npos) << text;
}

TEST_P(Products, matrices_with_vectors_are_as_exact_as_eagers) {
  const at::NoGradGuard no_grad;
  const auto run = [](const Tensor& query, const Tensor& keys, const Tensor& values) {
    const Tensor weights = (query.bmm(keys.transpose(1, 2)) * 0.125).softmax(-1);
    return keys.bmm(query.transpose(1, 2)).relu() + weights.bmm(values).sum(-1, /*keepdim=*/true);
  };
  for (const auto dtype : {at::kHalf, at::kBFloat16, at::kFloat}) {
    const auto fast = compile(run, options());
    for (int call = 0; call < 4; ++call) {
      const Tensor query = random({24, 1, 64}, dtype);
      const Tensor keys = random({24, 301, 64}, dtype), values = random({24, 301, 64}, dtype);
      const auto wide = [](const Tensor& t) { return t.to(at::kDouble); };
      const Tensor exact = run(wide(query), wide(keys), wide(values));
      EXPECT_LE(distance(fast(query, keys, values), exact), 2 * distance(run(query, keys, values), exact)) << dtype;
    }
    EXPECT_EQ(fast.report().text().find("bmm"), std::string::npos) << fast.report();
  }
}

/// They run behind the graph: every call gets memory of its own, which nobody writes later.
TEST_P(Products, that_end_a_call_with_a_large_result_give_fresh_ones) {
  const at::NoGradGuard no_grad;
  const Tensor weight = random({64 << 10, 256}) / 16;
  const auto run = [&](const Tensor& x) {
    const Tensor hidden = (x - x.mean(-1, /*keepdim=*/true)).mul(2).relu();
    return std::make_pair(hidden, at::linear(hidden.reshape({64, 256}), weight).view({2, 32, -1}));
  };
  const auto fast = compile(run, options());
  std::vector<std::pair<Tensor, Tensor>> found, wanted;
  for (int call = 0; call < 5; ++call) {
    const Tensor x = random({2, 32, 256});
    found.push_back(fast(x));
    wanted.push_back(run(x));
  }
  for (size_t call = 0; call < found.size(); ++call) {
    EXPECT_LE(distance(found[call].first, wanted[call].first.to(at::kDouble)), 2e-3) << "call " << call;
    EXPECT_LE(distance(found[call].second, wanted[call].second.to(at::kDouble)), 4e-3) << "call " << call;
    EXPECT_EQ(found[call].second.strides(), wanted[call].second.strides());
  }
  EXPECT_GT(fast.stats().replayed, 0);
  const bool recorded = GetParam().mode == Mode::ReduceOverhead;
  EXPECT_EQ(fast.report().text().find("runs behind the graph") != std::string::npos, recorded) << fast.report();
}

/// Neither operand is the caller's.
TEST_P(Products, that_end_a_call_may_read_what_the_call_made_alone) {
  const at::NoGradGuard no_grad;
  const auto run = [](const Tensor& x) { return at::bmm(x.relu(), x.sin().transpose(1, 2)); };
  const auto fast = compile(run, options());
  for (int call = 0; call < 4; ++call) {
    const Tensor x = random({8, 1024, 64});
    const Tensor found = fast(x), wanted = run(x).to(at::kDouble);
    EXPECT_LE(distance(found, wanted), 4e-3) << "call " << call;
  }
  EXPECT_GT(fast.stats().replayed, 0);
}

/// Products so small that a generated kernel takes their place: of halves that a library would load two bytes at a
/// time, of a step of a recurrence, and their gradients.
TEST_P(Products, small_ones_are_as_exact_as_eagers) {
  const auto layer = [](const Tensor& x, const Tensor& w, const Tensor& h, const Tensor& u, const Tensor& b) {
    return at::sigmoid(at::linear(at::tanh(at::linear(x, w, b) + h.mm(u)), u.t()));
  };
  for (const auto dtype : {at::kHalf, at::kFloat, at::kDouble}) {
    const auto step = [&](std::vector<Tensor> leaves) {
      for (Tensor& leaf : leaves) leaf = leaf.detach().requires_grad_();
      const Tensor y = layer(leaves[0], leaves[1], leaves[2], leaves[3], leaves[4]);
      y.square().sum().backward();
      std::vector<Tensor> all{y.detach()};
      for (const Tensor& leaf : leaves) all.push_back(leaf.grad());
      return all;
    };
    const auto fast = compile(step, options());
    for (int call = 0; call < 5; ++call) {
      const std::vector<Tensor> drawn{random({8, 228}, dtype), random({19, 228}, dtype) * 0.1, random({8, 19}, dtype),
                                      random({19, 19}, dtype) * 0.2, random({19}, dtype)};
      std::vector<Tensor> wide;
      for (const Tensor& tensor : drawn) wide.push_back(tensor.to(at::kDouble));
      const auto found = fast(drawn), eager = step(drawn), exact = step(wide);
      for (size_t i = 0; i < found.size(); ++i) {
        const double allowed = dtype == at::kHalf ? 1e-3 : dtype == at::kFloat ? 1e-6 : 1e-14;
        EXPECT_LE(distance(found[i], exact[i]), 2 * distance(eager[i], exact[i]) + allowed)
            << dtype << ", call " << call << ", tensor " << i;
      }
    }
    EXPECT_GT(fast.stats().replayed, 0);
    EXPECT_EQ(fast.report().text().find("aten::mm"), std::string::npos) << "left to the library\n" << fast.report();
  }
}

INSTANTIATE_TEST_SUITE_P(Where, Products,
                         ::testing::Values(Where{"gpu", at::kCUDA, Mode::Default},
                                           Where{"gpu_graph", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

}  // namespace
}  // namespace sinter::test
