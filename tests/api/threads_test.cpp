#include <atomic>
#include <thread>

#include "api_test.h"

namespace sinter::test {
namespace {

using Threads = Api;

/// Runs `body` on four threads at once, each without gradients.
template <class Body>
void on_four_threads(Body body) {
  std::vector<std::thread> threads;
  for (int index = 0; index < 4; ++index) {
    threads.emplace_back([&body, index] {
      const c10::NoGradGuard no_grad;
      body(index);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(Threads, calls_from_several_threads_are_right_from_the_first_call_on) {
  ConvBnRelu model;
  model->eval();
  auto fast = compile(model, unlimited());
  std::atomic<int> wrong = 0;
  on_four_threads([&](int index) {
    for (int call = 0; call < 25; ++call) {
      const auto x = at::randn({1 + (index + call) % 3, 3, 8, 8});
      if (!same(fast(x), model->forward(x))) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  // How many of those calls find something compiled depends on the machine; of the next ones some must.
  for (int call = 0; call < 8; ++call) fast(at::randn({2, 3, 8, 8}));
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GT(fast.stats().replayed, 0) << fast.report();
}

TEST_F(Threads, copies_share_their_entries) {
  auto fast = compile(erf_gelu, unlimited());
  auto copy = fast;
  fast(at::ones({4}));
  copy(at::ones({4}));
  EXPECT_EQ(fast.report().entries.size(), 1);
  EXPECT_EQ(fast.stats().replayed, 1);
  EXPECT_EQ(copy.stats(), fast.stats());
}

TEST_F(Threads, a_compiled_function_inside_a_compiled_function_is_part_of_it) {
  auto inner = compile(erf_gelu, unlimited());
  auto outer = compile([inner](const at::Tensor& x) { return inner(x) + 1; }, unlimited());
  const auto x = at::randn({8});
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(same(outer(x), erf_gelu(x) + 1));
  EXPECT_TRUE(inner.report().entries.empty());
  EXPECT_TRUE(unbroken(outer.report()));
  EXPECT_EQ(outer.stats().replayed, 3);
}

}  // namespace
}  // namespace sinter::test
