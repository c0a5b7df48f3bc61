#include <ATen/ATen.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "harness.h"

/// The harness sees what it is there to see.
namespace sinter::test::hostile {
namespace {

using at::Tensor;

std::vector<Observation> seen(const std::vector<Held>& tensors) {
  Observation observation{.label = "call 1", .facts = {}, .values = {}};
  observe(observation, tensors);
  return {observation};
}

std::optional<std::string> between(const std::vector<Held>& eager, const std::vector<Held>& compiled,
                                   Numbers numbers = Numbers::rounded) {
  return difference(seen(eager), seen(compiled), numbers);
}

TEST(HostileHarness, equal_worlds_do_not_differ) {
  const Tensor x = at::randn({3});
  const Tensor other = x.clone();
  EXPECT_FALSE(between({{"x", x}, {"y", x[0]}}, {{"x", other}, {"y", other[0]}}));
}

TEST(HostileHarness, sees_numbers_that_differ) {
  const Tensor x = at::ones({3});
  EXPECT_TRUE(between({{"x", x}}, {{"x", x * 1.001}}));
  EXPECT_FALSE(between({{"x", x}}, {{"x", x * (1 + 1e-7)}}));
  EXPECT_TRUE(between({{"x", x}}, {{"x", x * (1 + 1e-6)}}, Numbers::exact));
  const Tensor nan = at::full({3}, std::nan(""));
  EXPECT_TRUE(between({{"x", x}}, {{"x", nan}}));
  EXPECT_FALSE(between({{"x", nan}}, {{"x", nan}}, Numbers::exact));
  EXPECT_TRUE(between({{"x", at::arange(3)}}, {{"x", at::arange(3) + 1}}));
}

TEST(HostileHarness, sees_the_sign_of_zero_where_bits_count) {
  const Tensor zero = at::zeros({1});
  EXPECT_TRUE(between({{"x", zero}}, {{"x", -zero}}, Numbers::exact));
  EXPECT_FALSE(between({{"x", zero}}, {{"x", -zero}}));
}

TEST(HostileHarness, sees_who_shares_memory) {
  const Tensor x = at::ones({4, 4});
  EXPECT_TRUE(between({{"x", x}, {"y", x}}, {{"x", x}, {"y", x.view({4, 4})}}));
  EXPECT_TRUE(between({{"x", x}, {"y", x[1]}}, {{"x", x}, {"y", x[1].clone()}}));
  EXPECT_TRUE(between({{"x", x}, {"y", x[1]}}, {{"x", x}, {"y", x[2]}}));
}

TEST(HostileHarness, sees_types_strides_and_flags) {
  const Tensor x = at::ones({4, 4});
  EXPECT_TRUE(between({{"x", x}}, {{"x", x.to(at::kDouble)}}));
  EXPECT_TRUE(between({{"x", x}}, {{"x", x.t().clone()}}));
  EXPECT_TRUE(between({{"x", x}}, {{"x", x.clone().requires_grad_()}}));
  EXPECT_TRUE(between({{"x", x}}, {{"x", Tensor()}}));
}

TEST(HostileHarness, sees_gradients) {
  Tensor x = at::ones({2}).requires_grad_();
  Tensor y = at::ones({2}).requires_grad_();
  y.mutable_grad() = at::ones({2});
  EXPECT_TRUE(between({{"x", x}}, {{"x", y}}));
  x.mutable_grad() = at::zeros({2});
  EXPECT_TRUE(between({{"x", x}}, {{"x", y}}));
}

void throws_one_text_and_then_another(Session& s) {
  static int runs = 0;
  const int run = ++runs;
  auto f = s.compile([run](const Tensor&) -> Tensor { throw std::runtime_error(std::to_string(run)); });
  f(s.randn({2}));
}

void writes_to_its_argument_in_the_second_run(Session& s) {
  static int runs = 0;
  const bool second = ++runs == 2;
  auto f = s.compile([second](const Tensor& x) { return second ? x.add_(1) : x + 1; });
  f(s.randn({2}));
}

void draws_once_more_in_the_second_run(Session& s) {
  static int runs = 0;
  if (++runs == 2) (void)at::rand({1});
  auto f = s.compile([](const Tensor& x) { return x + 1; });
  for (int call = 0; call < 3; ++call) f(s.randn({2}));
}

void repeats_itself(Session& s) {
  auto f = s.compile([](const Tensor& x) { return x + 1; });
  for (int call = 0; call < 4; ++call) f(s.randn({2}));
}

void checked(const Program& program) { (void)check(program, {}); }

TEST(HostileHarness, check_fails_where_errors_differ) {
  EXPECT_NONFATAL_FAILURE(checked({"", throws_one_text_and_then_another}), "threw");
}

TEST(HostileHarness, check_fails_where_an_argument_is_written) {
  EXPECT_NONFATAL_FAILURE(checked({"", writes_to_its_argument_in_the_second_run}), "argument 0");
}

TEST(HostileHarness, check_fails_where_a_generator_is_left_elsewhere) {
  EXPECT_NONFATAL_FAILURE(checked({"", draws_once_more_in_the_second_run}), "default generator of the CPU");
}

void always_throws(Session& s) {
  auto f = s.compile([](const Tensor&) -> Tensor { throw std::runtime_error("no"); });
  for (int call = 0; call < 4; ++call) f(s.randn({2}));
}

TEST(HostileHarness, check_tells_which_call_was_the_first_that_compiled_code_answered) {
  EXPECT_EQ(check({"", repeats_itself}, {}), 2);
  EXPECT_EQ(check({"", always_throws}, {}), 0);
}

}  // namespace
}  // namespace sinter::test::hostile
