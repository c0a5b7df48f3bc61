// Products of one input under Options::freeze, beside eager. Skips where there is no GPU.
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>

#include "accuracy.h"
#include "api_test.h"

namespace sinter::test {
namespace {

constexpr int64_t width = 768;
constexpr int64_t heads = 4;

/// Attention with biases, then a gated MLP without.
struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(bool library_attention) : by_library(library_attention) {
    for (auto [name, layer] : {std::pair{"q", &q}, {"k", &k}, {"v", &v}, {"out", &out}}) {
      *layer = register_module(name, torch::nn::Linear(width, width));
    }
    const auto without_bias = [](int64_t in, int64_t features) {
      return torch::nn::Linear(torch::nn::LinearOptions(in, features).bias(false));
    };
    gate = register_module("gate", without_bias(width, 3 * width));
    up = register_module("up", without_bias(width, 3 * width));
    down = register_module("down", without_bias(3 * width, width));
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor mixed = attention(split(q->forward(x)), split(k->forward(x)), split(v->forward(x)));
    const at::Tensor h = x + out->forward(mixed.transpose(1, 2).reshape(x.sizes()));
    return h + down->forward(at::silu(gate->forward(h)) * up->forward(h));
  }

  static at::Tensor split(const at::Tensor& x) {
    return x.view({x.size(0), x.size(1), heads, width / heads}).transpose(1, 2);
  }

  [[nodiscard]] at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const {
    if (by_library) return at::scaled_dot_product_attention(query, key, value);
    return at::matmul(at::softmax(at::matmul(query, key.transpose(2, 3)) * 0.25, -1), value);
  }

  bool by_library;
  torch::nn::Linear q{nullptr}, k{nullptr}, v{nullptr}, out{nullptr}, gate{nullptr}, up{nullptr}, down{nullptr};
};
TORCH_MODULE(Block);

/// Matrix products with and without a bias.
int64_t products_of(const EntryReport& entry) {
  return static_cast<int64_t>(calls_of(entry, "aten::addmm")) + static_cast<int64_t>(calls_of(entry, "aten::mm"));
}

class MergedProducts : public Api {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  }

  static Block block(bool library_attention, at::ScalarType dtype) {
    Block made(library_attention);
    made->eval();
    made->to(at::kCUDA, dtype);
    return made;
  }

  static at::Tensor draw(int64_t batch, int64_t tokens, at::ScalarType dtype) {
    return at::randn({batch, tokens, width}, at::TensorOptions(at::kCUDA)).to(dtype);
  }

  static double tolerance(at::ScalarType dtype) { return dtype == at::kFloat ? 1e-4 : 1e-2; }
};

TEST_F(MergedProducts, of_one_input_are_one_call_with_frozen_weights) {
  for (const auto dtype : {at::kFloat, at::kHalf}) {
    for (const bool library_attention : {true, false}) {
      for (const auto& [batch, tokens] : {std::pair<int64_t, int64_t>{2, 16}, {1, 16}, {3, 1}, {1, 1}}) {
        for (const auto mode : {Mode::Default, Mode::ReduceOverhead}) {
          Block model = block(library_attention, dtype);
          auto fast = compile(model, unlimited({.mode = mode, .freeze = true}));
          for (int call = 0; call < 5; ++call) {
            const auto x = draw(batch, tokens, dtype);
            ASSERT_TRUE(same(fast(x), model->forward(x), tolerance(dtype)))
                << batch << "x" << tokens << " call " << call << "\n"
                << fast.report();
          }
          const Report report = fast.report();
          ASSERT_TRUE(unbroken(report));
          EXPECT_EQ(products_of(report.entries.at(0)), 4) << "q, k, v are one, gate and up are one\n" << report;
        }
      }
    }
  }
}

TEST_F(MergedProducts, stay_apart_where_weights_may_change_or_results_are_to_be_as_eager_rounds_them) {
  for (const Options& options : {Options{}, Options{.numerics = Numerics::eager, .freeze = true}}) {
    Block model = block(true, at::kHalf);
    auto fast = compile(model, unlimited(options));
    for (int call = 0; call < 3; ++call) {
      const auto x = draw(2, 16, at::kHalf);
      ASSERT_TRUE(same(fast(x), model->forward(x), tolerance(at::kHalf))) << fast.report();
    }
    EXPECT_EQ(products_of(fast.report().entries.at(0)), 7) << fast.report();
  }
}

TEST_F(MergedProducts, of_many_sizes_give_eagers_results) {
  Block model = block(true, at::kHalf);
  auto fast = compile(model, unlimited({.freeze = true}));
  for (int round = 0; round < 2; ++round) {
    for (const int64_t tokens : {16, 24, 40, 17, 1, 33}) {
      const auto x = draw(1, tokens, at::kHalf);
      ASSERT_TRUE(same(fast(x), model->forward(x), tolerance(at::kHalf))) << tokens << "\n" << fast.report();
    }
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

}  // namespace
}  // namespace sinter::test
