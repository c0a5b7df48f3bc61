#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "where.h"

/// Products that Sinter hands to the library itself: what follows them computed as they are stored, and the choice
/// between the library's ways.
namespace sinter::test {
namespace {

using at::Tensor;

class ProductChoices : public OnDevice {
 protected:
  [[nodiscard]] static Tensor random(at::IntArrayRef sizes, at::ScalarType dtype) {
    return at::randn(sizes, at::TensorOptions(at::kCUDA)).to(dtype);
  }
  [[nodiscard]] static Options options(Mode mode) { return unlimited({.mode = mode, .strict = true}); }
};

double distance(const Tensor& found, const Tensor& exact) {
  return ((found.to(at::kDouble) - exact).abs().max() / exact.abs().max()).item<double>();
}

/// All choices of a function.
std::vector<ChoiceRecord> choices_of(const Report& report) {
  std::vector<ChoiceRecord> choices;
  for (const EntryReport& entry : report.entries) {
    choices.insert(choices.end(), entry.choices.begin(), entry.choices.end());
  }
  return choices;
}

bool has(const std::vector<ChoiceRecord>& choices, const std::string& problem) {
  return std::ranges::any_of(choices, [&](const ChoiceRecord& choice) { return choice.problem == problem; });
}

/// A residual of 8 MiB, a ReLU and a tanh GELU, with and without a bias, of weights that lie both ways.
TEST_P(ProductChoices, epilogues_are_as_exact_as_eagers) {
  const at::NoGradGuard no_grad;
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    const Tensor wide = random({1024, 512}, dtype) / 16, back = random({1024, 1024}, dtype) / 32;
    const Tensor bias = random({1024}, dtype);
    const auto run = [](const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& v) {
      const Tensor hidden = at::linear(x, w, b).relu();
      const Tensor residual = hidden + at::linear(hidden, v, b);
      return std::make_pair(residual, at::gelu(residual.matmul(v), "tanh") + at::relu(x.matmul(w.t()) + residual));
    };
    const auto fast = compile([&](const Tensor& x) { return run(x, wide, bias, back); }, options(GetParam().mode));
    for (int call = 0; call < 5; ++call) {
      const Tensor x = random({8, 512, 512}, dtype);
      const auto found = fast(x), eager = run(x, wide, bias, back);
      const auto as_double = [](const Tensor& t) { return t.to(at::kDouble); };
      const auto exact = run(as_double(x), as_double(wide), as_double(bias), as_double(back));
      EXPECT_LE(distance(found.first, exact.first), 1.5 * distance(eager.first, exact.first)) << dtype;
      EXPECT_LE(distance(found.second, exact.second), 1.5 * distance(eager.second, exact.second)) << dtype;
      EXPECT_EQ(found.first.strides(), eager.first.strides());
    }
    EXPECT_GT(fast.stats().replayed, 0);
    const auto choices = choices_of(fast.report());
    const std::string half = dtype == at::kHalf ? "f16" : "bf16";
    for (const char* what : {"[4096,512] x {}[512,1024] + bias, relu", "[4096,1024] x {}[1024,1024] + bias + summand",
                             "[4096,1024] x {}[1024,1024], gelu tanh", "[4096,512] x {}[512,1024] + summand, relu"}) {
      std::string problem = half + what;
      problem.replace(problem.find("{}"), 2, half);
      EXPECT_TRUE(has(choices, problem)) << problem << "\n" << fast.report();
    }
  }
}

TEST_P(ProductChoices, numbers_that_are_none_pass_through_activations) {
  const at::NoGradGuard no_grad;
  const Tensor weight = at::eye(64, at::TensorOptions(at::kCUDA).dtype(at::kHalf));
  const auto run = [&](const Tensor& x) {
    const Tensor product = x.mm(weight);
    return std::make_pair(x.mm(weight).relu(), at::gelu(product, "tanh"));
  };
  const auto fast = compile(run, options(GetParam().mode));
  for (int call = 0; call < 4; ++call) {
    Tensor x = random({128, 64}, at::kHalf);
    x[3].fill_(std::numeric_limits<double>::quiet_NaN());
    x[4][5] = std::numeric_limits<double>::infinity();
    x[6][7] = -std::numeric_limits<double>::infinity();
    const auto found = fast(x), eager = run(x);
    EXPECT_TRUE(found.first.isnan().equal(eager.first.isnan()));
    EXPECT_TRUE(found.second.isnan().equal(eager.second.isnan()));
    EXPECT_TRUE(same(found.first.nan_to_num(), eager.first.nan_to_num(), 1e-3));
  }
}

TEST_P(ProductChoices, are_measured_once_for_all_functions) {
  if (GetParam().mode != Mode::ReduceOverhead) GTEST_SKIP() << "one way is enough";
  const at::NoGradGuard no_grad;
  const Tensor weight = random({1000, 520}, at::kHalf) / 16;
  const auto run = [&](const Tensor& x) { return at::bmm(x.relu(), x.transpose(1, 2)).flatten(0, 1).mm(weight); };
  for (const char* origin : {"measured", "measured"}) {
    const auto fast = compile(run, options(Mode::MaxAutotune));
    for (int call = 0; call < 4; ++call) {
      const Tensor x = random({4, 1000, 24}, at::kHalf);
      const auto wide = [](const Tensor& t) { return t.to(at::kDouble); };
      const Tensor exact = at::bmm(wide(x).relu(), wide(x).transpose(1, 2)).flatten(0, 1).mm(wide(weight));
      EXPECT_LE(distance(fast(x), exact), 2 * distance(run(x), exact));
    }
    EXPECT_GT(fast.stats().replayed, 0);
    const auto choices = choices_of(fast.report());
    ASSERT_EQ(choices.size(), 2u) << fast.report();
    for (const ChoiceRecord& choice : choices) {
      EXPECT_TRUE(choice.origin == origin || choice.origin == "disk") << choice.origin;
      ASSERT_GE(choice.measured.size(), 2u) << choice.problem;
      EXPECT_EQ(choice.measured.front().name, "LibTorch");
      const auto chosen = std::ranges::find(choice.measured, choice.chosen, &ChoiceRecord::Alternative::name);
      ASSERT_NE(chosen, choice.measured.end());
      for (const auto& other : choice.measured) {
        EXPECT_GT(other.microseconds, 0);
        EXPECT_LE(chosen->microseconds, 1.03 * other.microseconds) << choice.problem;
      }
    }
    EXPECT_NE(fast.report().text().find("choice    f16[4000,1000] x f16[1000,520]"), std::string::npos);
  }
}

TEST_P(ProductChoices, without_time_are_guessed) {
  if (GetParam().mode != Mode::ReduceOverhead) GTEST_SKIP() << "one way is enough";
  const at::NoGradGuard no_grad;
  const Tensor weight = random({520, 320}, at::kHalf) / 16;
  Options given = options(Mode::MaxAutotune);
  given.autotune_seconds = 0;
  const auto fast = compile([&](const Tensor& x) { return x.mm(weight).relu(); }, given);
  for (int call = 0; call < 4; ++call) {
    const Tensor x = random({512, 520}, at::kHalf);
    EXPECT_TRUE(same(fast(x), x.mm(weight).relu(), 1e-2));
  }
  const auto choices = choices_of(fast.report());
  ASSERT_EQ(choices.size(), 1u);
  EXPECT_EQ(choices.front().origin, "not measured");
  EXPECT_TRUE(choices.front().measured.empty());
}

INSTANTIATE_TEST_SUITE_P(Everywhere, ProductChoices,
                         ::testing::Values(Where{"gpu", at::kCUDA, Mode::Default},
                                           Where{"gpu_graph", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

}  // namespace
}  // namespace sinter::test
