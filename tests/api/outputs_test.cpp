#include "api_test.h"

namespace sinter::test {
namespace {

using Outputs = Api;
using at::Tensor;

TEST_F(Outputs, a_returned_argument_is_the_callers_own_tensor) {
  auto fast = compile([](const Tensor& x) { return std::make_pair(x, x + 1); }, unlimited());
  const auto x = at::ones({2});
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(fast(x).first.is_same(x));
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 3);
}

TEST_F(Outputs, a_view_of_an_argument_writes_through_to_it) {
  auto fast = compile([](const Tensor& x) { return std::make_pair(x.slice(0, 1, 3), x * 2); }, unlimited());
  for (int call = 0; call < 4; ++call) {
    const auto x = at::zeros({4});
    fast(x).first.fill_(5);
    EXPECT_TRUE(at::equal(x, at::ones({4}) * at::arange(4).ge(1).logical_and(at::arange(4).lt(3)) * 5)) << x;
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 3);
}

TEST_F(Outputs, a_result_is_never_written_again) {
  auto fast = compile(erf_gelu, unlimited({.mode = Mode::ReduceOverhead}));
  const auto x = at::randn({16});
  std::vector<Tensor> kept;
  for (int call = 0; call < 8; ++call) kept.push_back(fast(x + call));
  for (int call = 0; call < 8; ++call) EXPECT_TRUE(same(kept[static_cast<size_t>(call)], erf_gelu(x + call)));
}

TEST_F(Outputs, what_eager_computes_freshly_shares_no_memory_with_the_argument) {
  auto fast = compile([](const Tensor& x) { return std::make_tuple(x * 1, x + 0, x.clone()); }, unlimited());
  for (int call = 0; call < 4; ++call) {
    const auto x = at::ones({4});
    const auto [a, b, c] = fast(x);
    for (const auto& y : {a, b, c}) EXPECT_NE(y.data_ptr(), x.data_ptr());
    EXPECT_NE(a.data_ptr(), b.data_ptr());
  }
}

TEST_F(Outputs, two_results_that_are_one_tensor_stay_one) {
  auto fast = compile(
      [](const Tensor& x) {
        auto y = x * 2;
        return std::make_pair(y, y);
      },
      unlimited());
  for (int call = 0; call < 4; ++call) {
    const auto [a, b] = fast(at::ones({4}));
    EXPECT_TRUE(a.is_same(b));
  }
}

TEST_F(Outputs, equal_computations_give_separate_results) {
  auto fast = compile([](const Tensor& x) { return std::make_pair(x * 2, x * 2); }, unlimited());
  for (int call = 0; call < 4; ++call) {
    const auto [a, b] = fast(at::ones({4}));
    a.fill_(7);
    EXPECT_TRUE(same(b, at::ones({4}) * 2));
  }
}

TEST_F(Outputs, a_fresh_tensor_and_its_transpose_share_memory) {
  auto fast = compile(
      [](const Tensor& x) {
        auto y = x * 2;
        return std::make_pair(y, y.t());
      },
      unlimited());
  for (int call = 0; call < 4; ++call) {
    const auto x = at::randn({2, 3});
    const auto [a, b] = fast(x);
    ASSERT_TRUE(same(b, (x * 2).t()));
    a.fill_(7);
    EXPECT_EQ(b[0][0].item<float>(), 7);
  }
}

TEST_F(Outputs, returned_state_is_the_state_itself) {
  const auto weight = at::randn({3});
  auto fast = compile([weight](const Tensor& x) { return std::make_pair(weight, x * weight); }, unlimited());
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(fast(at::ones({3})).first.is_same(weight));
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 3);
  EXPECT_EQ(fast.report().entries.size(), 1) << fast.report();
}

}  // namespace
}  // namespace sinter::test
