#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>
#include <vector>

#include "tests/checked/checked.h"

/// Stand-ins are the tensors that eager would have given: what a program does to one in a call is seen in that call
/// alone.
namespace sinter::test {
namespace {

using at::Tensor;

constexpr int kCalls = 8;

/// A compiled program's results, call by call, beside eager's. The program is given the number of the call.
template <class Program>
void expect_same_calls(const Program& program, int64_t replayed = kCalls - 3) {
  auto fast = compile(program, checked());
  for (int64_t call = 0; call < kCalls; ++call) {
    SCOPED_TRACE(call);
    const Tensor x = at::randn({2, 6});
    const std::vector<Tensor> expected = program(x, call);
    const std::vector<Tensor> results = fast(x, call);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_TRUE(same(results[i], expected[i]));
      EXPECT_EQ(results[i].requires_grad(), expected[i].requires_grad());
      EXPECT_EQ(results[i].is_view(), expected[i].is_view());
      EXPECT_EQ(results[i]._version(), expected[i]._version());
    }
  }
  EXPECT_GE(fast.stats().replayed, replayed);
}

TEST_F(Checked, what_is_kept_in_some_calls_is_the_programs) {
  const c10::NoGradGuard no_grad;
  std::vector<Tensor> eager, compiled;
  const auto program = [](const Tensor& x, int64_t call, std::vector<Tensor>& kept) {
    const Tensor sum = x + 1, view = sum.view({3, 4}), product = view.mul(2);
    if (call % 3 == 1) kept.push_back(sum);
    if (call % 3 == 2) kept.push_back(view.slice(0, 1, 2));
    return product - 1;
  };
  auto fast = compile([&](const Tensor& x, int64_t call) { return program(x, call, compiled); }, checked());
  for (int64_t call = 0; call < 12; ++call) {
    const Tensor x = at::randn({2, 6});
    EXPECT_TRUE(same(fast(x, call), program(x, call, eager)));
  }
  ASSERT_EQ(compiled.size(), eager.size());
  for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(same(compiled[i], eager[i])) << i;
  EXPECT_GE(fast.stats().replayed, 6);
}

/// Nobody holds the memory but a tensor that is no view of the stand-in, or came in a list.
TEST_F(Checked, what_lies_in_the_memory_of_a_stand_in_holds_it) {
  const auto program = [](const Tensor& x, int64_t call) {
    const Tensor sum = x + 1, view = sum.view({12});
    std::vector<Tensor> results{view * 2};
    if (call % 3 == 1) results.push_back(sum.detach());
    if (call % 3 == 2) results.push_back(sum.chunk(2, 1).back());
    return results;
  };
  {
    const c10::NoGradGuard no_grad;
    expect_same_calls(program);
  }
  auto fast = compile(program, checked());
  std::vector<std::pair<Tensor, Tensor>> kept;
  for (int64_t call = 0; call < 12; ++call) {
    const Tensor x = at::randn({2, 6});
    const c10::InferenceMode inference;
    kept.emplace_back(fast(x, call).back(), program(x, call).back());
  }
  for (const auto& [result, expected] : kept) EXPECT_TRUE(same(result, expected));
}

TEST_F(Checked, versions_begin_anew_in_every_call) {
  const c10::NoGradGuard no_grad;
  std::vector<int64_t> versions;
  const auto program = [&](const Tensor& x, int64_t /*call*/) {
    Tensor sum = x + 1;
    versions.push_back(sum._version());
    sum.mul_(2).add_(x);
    const Tensor view = sum.t();
    versions.push_back(view._version());
    view.relu_();
    versions.push_back(sum._version());
    return std::vector<Tensor>{view.exp(), x * 2};
  };
  expect_same_calls(program);
  for (size_t i = 0; i < versions.size(); ++i) EXPECT_EQ(versions[i], std::vector<int64_t>({0, 2, 3})[i % 3]) << i;
}

TEST_F(Checked, what_the_program_makes_of_a_stand_in_ends_with_the_call) {
  const c10::NoGradGuard no_grad;
  int64_t seen = 0;
  const auto program = [&](const Tensor& x, int64_t /*call*/) {
    Tensor leaf = x + 1, turned = x * 3, view = leaf.view({6, 2});
    EXPECT_FALSE(leaf.requires_grad());
    EXPECT_FALSE(view.requires_grad());
    EXPECT_EQ(turned.sizes(), x.sizes());
    leaf.requires_grad_();
    turned.t_();
    ++seen;
    return std::vector<Tensor>{view.sum(1), turned.sum(1), leaf.detach() * 2};
  };
  expect_same_calls(program);
  EXPECT_EQ(seen, 2 * kCalls);
}

TEST_F(Checked, a_stand_in_may_take_the_data_of_another_tensor) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x, int64_t /*call*/) {
    Tensor sum = x + 1;
    const Tensor other = x * 2;
    sum.set_data(other);
    return std::vector<Tensor>{sum + other, x - 1};
  };
  expect_same_calls(program, 0);
}

TEST_F(Checked, views_in_front_of_and_behind_writes_see_the_same) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x, int64_t call) {
    Tensor sum = x + 1;
    const Tensor before = sum.view({6, 2});
    sum.add_(1);
    const Tensor behind = sum.view({6, 2});
    std::vector<Tensor> results{before * behind};
    if (call % 2 == 1) results.push_back(behind);
    return results;
  };
  expect_same_calls(program);
}

TEST_F(Checked, a_view_made_without_gradients_refuses_writes_with_them_on_every_call) {
  const c10::NoGradGuard no_grad;
  const Tensor weight = at::ones({6}).requires_grad_();
  const auto program = [&](const Tensor& x, int64_t /*call*/) {
    const Tensor sum = x + 1;
    Tensor view = sum.view({12});
    view.mul_(2);
    const Tensor rows = sum.view({2, 6});
    const c10::AutoGradMode gradients(true);
    EXPECT_THROW(rows.add_(weight), c10::Error);
    return std::vector<Tensor>{view.detach() * 2};
  };
  expect_same_calls(program, 0);
}

TEST_F(Checked, stand_ins_are_of_the_mode_that_they_are_made_in) {
  const auto program = [](const Tensor& x) {
    const Tensor sum = x + 1;
    EXPECT_EQ(sum.is_inference(), c10::InferenceMode::is_enabled());
    const Tensor view = sum.view({12});
    EXPECT_EQ(view.is_inference(), c10::InferenceMode::is_enabled());
    return view * 2;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 12; ++call) {
    const c10::NoGradGuard no_grad;
    const Tensor x = at::randn({2, 6});
    const c10::InferenceMode inference(call % 2 == 1);
    const Tensor result = fast(x);
    EXPECT_EQ(result.is_inference(), call % 2 == 1);
    EXPECT_TRUE(same(result, program(x)));
  }
  EXPECT_GE(fast.stats().replayed, 6);
}

TEST_F(Checked, branches_see_what_comes_before_them) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x, int64_t call) {
    const Tensor sum = x + 1, view = sum.view({3, 4});
    if (call % 3 == 0) return std::vector<Tensor>{view.t() * 2};
    if (call % 3 == 1) return std::vector<Tensor>{view.select(0, 1) - sum.sum()};
    return std::vector<Tensor>{sum.view({12}), view.exp()};
  };
  expect_same_calls(program, 4);
}

TEST_F(Checked, nothing_of_a_replaced_parameter_is_kept) {
  const c10::NoGradGuard no_grad;
  Tensor weight = at::randn({6, 4});
  auto fast = compile([&](const Tensor& x) { return x.matmul(weight.t().t()).view({-1}) + 1; }, checked());
  for (int call = 0; call < 4; ++call) (void)fast(at::randn({2, 6}));
  const c10::weak_intrusive_ptr<c10::StorageImpl> old = weight.storage().getWeakStorageImpl();
  weight = at::randn({6, 4});
  (void)fast(at::randn({2, 6}));
  EXPECT_TRUE(old.expired());
  EXPECT_GE(fast.stats().replayed, 2);
}

TEST_F(Checked, calls_of_several_threads_have_their_own_stand_ins) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x, int64_t which) {
    Tensor sum = x + 1;
    const Tensor view = sum.view({3, 4});
    sum.mul_(2);
    return which % 2 == 0 ? view.t().matmul(view) : view.sum(1);
  };
  auto fast = compile(program, checked());
  for (int64_t which = 0; which < 6; ++which) (void)fast(at::randn({2, 6}), which);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      const c10::NoGradGuard none;
      std::vector<std::pair<Tensor, Tensor>> kept;
      for (int64_t call = 0; call < 200; ++call) {
        const Tensor x = at::full({2, 6}, 0.01 * static_cast<double>(thread * 200 + call));
        kept.emplace_back(fast(x, call), program(x, call));
      }
      for (const auto& [result, expected] : kept) EXPECT_TRUE(same(result, expected));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sinter::test
