#include "frontend/difference.h"
#include "tests/capture/capture_test.h"

namespace capture_test {
namespace {

TEST(Difference, names_operator_argument_and_both_values) {
  int calls = 0;
  const auto run = [&] { return trace_of([&](const at::Tensor& x) { return x + ++calls; }, small()); };
  const Trace first = run();
  const Trace second = run();
  const auto found = difference(first, second);
  ASSERT_TRUE(found);
  EXPECT_NE(found->find("aten::add.Scalar"), std::string::npos) << *found;
  EXPECT_NE(found->find("was 1, is 2"), std::string::npos) << *found;
  EXPECT_NE(found->find("difference_test.cpp"), std::string::npos) << *found;
}

TEST(Comparison, collects_the_numbers_that_differ) {
  const Program small_batch = [] { return std::vector<at::Tensor>{(torch::ones({2, 3}) * 2.5).select(0, 1)}; };
  const Program large_batch = [] { return std::vector<at::Tensor>{(torch::ones({4, 3}) * 3.5).select(0, 3)}; };
  const Trace first = trace_of(small_batch);
  const auto found = compare(first, trace_of(large_batch));
  EXPECT_EQ(found.other, std::nullopt) << *found.other;
  std::vector<std::string> texts;
  for (const auto& number : found.numbers) texts.push_back(describe(number, first));
  const auto says = [&](const std::string& end) {
    return std::any_of(texts.begin(), texts.end(), [&](const auto& text) { return text.ends_with(end); });
  };
  EXPECT_TRUE(says("size 0 of result 0 was 2, is 4")) << testing::PrintToString(texts);
  EXPECT_TRUE(says("argument 0[0] was 2, is 4")) << testing::PrintToString(texts);
  EXPECT_TRUE(says("argument 1 was 2.5, is 3.5")) << testing::PrintToString(texts);
  EXPECT_TRUE(says("the offset of result 0 was 3, is 9")) << testing::PrintToString(texts);
}

TEST(Comparison, ends_at_what_is_no_number) {
  const Trace first = trace_of([] { return std::vector<at::Tensor>{torch::ones({2}).relu()}; });
  const auto found = compare(first, trace_of([] { return std::vector<at::Tensor>{torch::ones({3}).tanh()}; }));
  ASSERT_TRUE(found.other);
  EXPECT_NE(found.other->find("aten::relu"), std::string::npos) << *found.other;
}

TEST(Difference, sees_another_operator) {
  bool odd = false;
  const auto run = [&] {
    return trace_of([&](const at::Tensor& x) { return (odd = !odd) ? x.sin() : x.cos(); }, small());
  };
  const Trace first = run();
  const Trace second = run();
  ASSERT_TRUE(difference(first, second));
  EXPECT_NE(difference(first, second)->find("aten::sin"), std::string::npos);
}

TEST(Difference, sees_other_wiring) {
  bool odd = false;
  const auto run = [&] {
    return trace_of(
        [&](const at::Tensor& x) {
          const at::Tensor a = x.sin(), b = x.cos();
          return (odd = !odd) ? a - b : b - a;
        },
        small());
  };
  const Trace first = run();
  EXPECT_TRUE(difference(first, run()));
}

TEST(Difference, sees_more_operators_and_other_results) {
  int calls = 0;
  const auto run = [&] {
    return trace_of([&](const at::Tensor& x) { return ++calls == 1 ? x.sin() : x.sin().cos(); }, small());
  };
  const Trace first = run();
  const auto found = difference(first, run());
  ASSERT_TRUE(found);
  EXPECT_NE(found->find("second run only"), std::string::npos) << *found;
}

TEST(Difference, sees_another_tensor_object_over_the_same_memory) {
  const at::Tensor x = small();
  const auto run = [&x] {
    return trace_of([&x] {
      const at::Tensor y = x.sin();
      return std::vector{y, y};
    });
  };
  const Trace first = run();
  Trace second = run();
  EXPECT_FALSE(difference(first, second));
  second.first_twin[1] = 1;
  EXPECT_EQ(difference(first, second), "result 1: another tensor object over the same memory is returned");
}

TEST(Difference, sees_content_that_changed) {
  float value = 0;
  const auto run = [&] {
    return trace_of([&](const at::Tensor& x) { return x * torch::tensor(std::vector<float>{1, 2, ++value}); }, small());
  };
  const Trace first = run();
  const auto found = difference(first, run());
  ASSERT_TRUE(found);
  EXPECT_NE(found->find("content 0"), std::string::npos) << *found;
}

TEST(Difference, is_none_between_equal_runs) {
  const auto run = [&] {
    return trace_of([&](const at::Tensor& x) { return (x * NAN + torch::tensor(std::vector<float>{1, 2, 3})).relu_(); },
                    small());
  };
  const Trace first = run();
  EXPECT_EQ(difference(first, run()), std::nullopt);
}

}  // namespace
}  // namespace capture_test
