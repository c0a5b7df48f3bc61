#include "bench/models/radam.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sinter::test {
namespace {

/// The paper's algorithm for one number in double, with torch.optim.RAdam's place for epsilon.
struct Number {
  double value = 0;
  double average = 0;
  double square = 0;

  /// True where the step is adaptive.
  bool step(double gradient, int t) {
    constexpr double lr = 1e-3;
    constexpr double most = 2 / (1 - 0.999) - 1;
    average = 0.9 * average + 0.1 * gradient;
    square = 0.999 * square + 0.001 * gradient * gradient;
    const double mean = average / (1 - std::pow(0.9, t));
    const double samples = most - 2 * t * std::pow(0.999, t) / (1 - std::pow(0.999, t));
    if (samples <= 5) {
      value -= lr * mean;
      return false;
    }
    const double rectified = std::sqrt((samples - 4) / (most - 4) * (samples - 2) / (most - 2) * most / samples);
    value -= lr * rectified * mean * std::sqrt(1 - std::pow(0.999, t)) / (std::sqrt(square) + 1e-8);
    return true;
  }
};

TEST(RAdam, its_steps_are_the_formulas_before_and_after_the_rate_adapts) {
  at::manual_seed(5);
  const at::Tensor parameter = at::randn({4}, at::kDouble).requires_grad_();
  const at::Tensor unused = at::randn({2}, at::kDouble).requires_grad_();
  const at::Tensor untouched = unused.detach().clone();
  std::vector<Number> numbers(4);
  for (int i = 0; i < 4; ++i) numbers[i].value = parameter[i].item<double>();
  bench::RAdam optimizer({parameter, unused});
  int adaptive = 0;
  for (int t = 1; t <= 10; ++t) {
    parameter.mutable_grad() = at::randn({4}, at::kDouble);
    optimizer.step();
    std::vector<double> expected;
    for (int i = 0; i < 4; ++i) {
      adaptive += numbers[i].step(parameter.grad()[i].item<double>(), t) ? 1 : 0;
      expected.push_back(numbers[i].value);
    }
    EXPECT_TRUE(at::allclose(parameter, at::tensor(expected, at::kDouble), 1e-12, 1e-14)) << t;
  }
  EXPECT_EQ(adaptive, 4 * 5) << "the sixth step is the first adaptive one";
  EXPECT_TRUE(unused.equal(untouched)) << "without a gradient nothing moves";
}

TEST(RAdam, a_learning_rate_that_changes_counts_from_the_next_step_on) {
  const at::Tensor parameter = at::randn({4}, at::kDouble).requires_grad_();
  bench::RAdam optimizer({parameter});
  parameter.mutable_grad() = at::randn({4}, at::kDouble);
  optimizer.param_groups()[0].options().set_lr(0);
  const at::Tensor before = parameter.detach().clone();
  optimizer.step();
  EXPECT_TRUE(parameter.equal(before));
}

}  // namespace
}  // namespace sinter::test
