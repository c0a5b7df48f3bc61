#include "api_test.h"

namespace sinter::test {
namespace {

using FirstLight = Api;

TEST_F(FirstLight, a_gelu_lambda_gives_eagers_results_on_its_first_ten_calls) {
  auto fast = compile(erf_gelu, unlimited());
  for (int call = 0; call < 10; ++call) {
    const auto x = at::randn({64, 33});
    ASSERT_TRUE(same(fast(x), erf_gelu(x))) << "call " << call << "\n" << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 9);
}

TEST_F(FirstLight, a_gelu_lambda_becomes_one_kernel_and_no_library_call) {
  auto fast = compile([](const at::Tensor& x) { return erf_gelu(x); }, unlimited());
  for (int call = 0; call < 2; ++call) fast(at::randn({128}));
  const auto report = fast.report();
  ASSERT_TRUE(unbroken(report));
  ASSERT_EQ(report.entries[0].kernels.size(), 1) << report;
  EXPECT_EQ(report.entries[0].kernels[0].launches, 1);
  EXPECT_TRUE(report.entries[0].externs.empty()) << report;
}

TEST_F(FirstLight, a_convolution_block_gives_eagers_results) {
  ConvBnRelu model;
  model->eval();
  model->bn->running_mean.normal_();
  model->bn->running_var.uniform_(0.5, 2);
  auto fast = compile(model, unlimited());
  for (int call = 0; call < 5; ++call) {
    const auto x = at::randn({2, 3, 16, 16});
    ASSERT_TRUE(same(fast(x), model->forward(x))) << "call " << call << "\n" << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 4);
}

TEST_F(FirstLight, a_convolution_block_runs_one_library_call_and_one_kernel) {
  ConvBnRelu model;
  model->eval();
  auto fast = compile(model, unlimited());
  for (int call = 0; call < 2; ++call) fast(at::randn({2, 3, 16, 16}));
  const auto report = fast.report();
  ASSERT_TRUE(unbroken(report));
  ASSERT_EQ(report.entries[0].externs.size(), 1) << report;
  EXPECT_EQ(report.entries[0].externs[0].calls, 1) << report;
  EXPECT_EQ(report.entries[0].kernels.size(), 2) << "the image is laid out channels-last\n" << report;
}

TEST_F(FirstLight, every_mode_gives_the_same_results) {
  ConvBnRelu model;
  model->eval();
  const auto x = at::randn({2, 3, 16, 16});
  const auto eager = model->forward(x);
  for (const auto mode : {Mode::Default, Mode::ReduceOverhead, Mode::MaxAutotune}) {
    auto fast = compile(model, unlimited({.mode = mode}));
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same(fast(x), eager)) << fast.report();
    EXPECT_TRUE(unbroken(fast.report()));
  }
}

TEST_F(FirstLight, half_precision_follows_eager) {
  for (const auto dtype : {at::kHalf, at::kBFloat16, at::kDouble}) {
    auto fast = compile(erf_gelu, unlimited());
    const auto x = at::randn({257}).to(dtype);
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), erf_gelu(x))) << fast.report();
    EXPECT_EQ(fast.stats().replayed, 2);
  }
}

TEST_F(FirstLight, inference_mode_compiles_and_returns_inference_tensors) {
  const c10::InferenceMode inference;
  auto fast = compile(erf_gelu, unlimited());
  const auto x = at::randn({32});
  for (int call = 0; call < 4; ++call) {
    const auto y = fast(x);
    ASSERT_TRUE(same(y, erf_gelu(x)));
    EXPECT_TRUE(y.is_inference());
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(FirstLight, an_empty_tensor_and_a_zero_dim_tensor_pass_through) {
  auto fast = compile(erf_gelu, unlimited());
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(same(fast(at::zeros({0, 4})), at::zeros({0, 4})));
    EXPECT_TRUE(same(fast(at::ones({})), erf_gelu(at::ones({}))));
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(FirstLight, random_ops_draw_from_libtorchs_generator) {
  auto fast = compile([](const at::Tensor& x) { return at::randn(x.sizes()) + x * 2; }, unlimited());
  const auto x = at::zeros({100});
  fast(x);
  at::manual_seed(7);
  const auto first = fast(x);
  const auto second = fast(x);
  EXPECT_FALSE(at::equal(first, second));
  at::manual_seed(7);
  EXPECT_TRUE(at::equal(fast(x), first));
}

TEST_F(FirstLight, more_than_two_to_the_31_elements) {
  const auto f = [](const at::Tensor& x) { return x * 3 + x; };
  auto fast = compile(f, unlimited());
  const auto x = beyond_32_bits(at::kCPU);
  const auto eager = fast(x);
  ASSERT_TRUE(at::equal(fast(x), eager));
  EXPECT_EQ(fast.stats().replayed, 1) << fast.report();
}

}  // namespace
}  // namespace sinter::test
