// Batch norm in training and its gradient, decomposed and interpreted, against a few lines of double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/ir/host_tensor.h"
#include "compiler/ir/parse.h"
#include "rows.h"

namespace sinter::passes {
namespace {

const std::vector<std::vector<size_t>> channels = rows_of({4, 3, 2, 5}, {0, 2, 3});
constexpr double eps = 1e-5;
constexpr double count = 40;

Row normalized(const Row& row) {
  Row result;
  for (const double x : row) result.push_back((x - mean_of(row)) / std::sqrt(variance_of(row) + eps));
  return result;
}

ir::HostTensor tensor(std::string_view type, const Row& numbers) {
  const std::vector<ir::RefValue> elements(numbers.begin(), numbers.end());
  return ir::tensor_of(ir::parse_type(type, {ir::Device::Kind::cuda, 0}), elements);
}

std::string forward(std::string_view dtype) {
  return fmt::format(
      "graph @g on cuda:0 (%x: {0}[4,3,2,5], %w: f32[3], %b: f32[3], %m: f32[3], %v: f32[3]) -> (%y, %s, %r, %n, %u) "
      "{{ "
      "%y, %s, %r, %n, %u = call aten._native_batch_norm_legit_functional(%x, %w, %b, %m, %v, true, 0.25, 1e-05) : "
      "{0}[4,3,2,5], f32[3], f32[3], f32[3], f32[3] }}",
      dtype);
}

TEST(TrainingNorm, normalizes_channels_and_follows_their_statistics) {
  for (const std::string_view dtype : {"f16", "bf16", "f32"}) {
    SCOPED_TRACE(dtype);
    const auto x = drawn(fmt::format("{}[4,3,2,5]", dtype), 1);
    const auto w = drawn("f32[3]", 2), b = drawn("f32[3]", 3), m = drawn("f32[3]", 4), v = drawn("f32[3]", 5);
    const auto found = decomposed(forward(dtype), {x, w, b, m, v});
    ASSERT_EQ(found.size(), 5);
    Row wanted = map_rows(numbers_of(x), channels, normalized);
    for (size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = wanted[i] * numbers_of(w)[i / 10 % 3] + numbers_of(b)[i / 10 % 3];
    const Row means = reduce_rows(numbers_of(x), channels, mean_of);
    const Row variances = reduce_rows(numbers_of(x), channels, variance_of);
    expect_close(found[0], wanted, 2 * tolerance_of(dtype));
    expect_close(found[1], means, tolerance_of("f32"));
    Row inverse, mean, variance;
    for (size_t c = 0; c < 3; ++c) {
      inverse.push_back(1 / std::sqrt(variances[c] + eps));
      mean.push_back(0.75 * numbers_of(m)[c] + 0.25 * means[c]);
      variance.push_back(0.75 * numbers_of(v)[c] + 0.25 * variances[c] * count / (count - 1));
    }
    expect_close(found[2], inverse, tolerance_of("f32"));
    expect_close(found[3], mean, tolerance_of("f32"));
    expect_close(found[4], variance, tolerance_of("f32"));
  }
}

/// One pass takes the variance from sums; beside a mean of 10,000 the squares themselves have no digit left for it.
TEST(TrainingNorm, loses_no_digits_where_the_mean_is_far_from_zero) {
  Row far = numbers_of(drawn("f32[4,3,2,5]", 1));
  for (double& number : far) number += 10000;
  const auto x = tensor("f32[4,3,2,5]", far);
  far = numbers_of(x);
  const auto w = drawn("f32[3]", 2), b = drawn("f32[3]", 3);
  const auto found = decomposed(forward("f32"), {x, w, b, b, b});
  Row wanted = map_rows(far, channels, normalized);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = wanted[i] * numbers_of(w)[i / 10 % 3] + numbers_of(b)[i / 10 % 3];
  expect_close(found[0], wanted, 1e-3);  // an element has three digits behind the point
}

TEST(TrainingNorm, has_the_gradients_that_differences_say) {
  const auto x = drawn("f32[4,3,2,5]", 1), g = drawn("f32[4,3,2,5]", 2), w = drawn("f32[3]", 3);
  const Row numbers = numbers_of(x), weights = numbers_of(g), scale = numbers_of(w);
  const Row means = reduce_rows(numbers, channels, mean_of);
  Row inverse;
  for (const double variance : reduce_rows(numbers, channels, variance_of))
    inverse.push_back(1 / std::sqrt(variance + eps));
  const auto m = tensor("f32[3]", means), r = tensor("f32[3]", inverse);
  const auto found = decomposed(
      "graph @g on cuda:0 (%g: f32[4,3,2,5], %x: f32[4,3,2,5], %w: f32[3], %m: f32[3], %r: f32[3]) -> (%gx, %gw, %gb) "
      "{ "
      "%gx, %gw, %gb = call aten.native_batch_norm_backward(%g, %x, %w, none, none, %m, %r, true, 1e-05, "
      "[true, true, true]) : f32[4,3,2,5], f32[3], f32[3] }",
      {g, x, w, m, r});
  ASSERT_EQ(found.size(), 3);
  const auto f = [&](const Row& at) {
    Row y = map_rows(at, channels, normalized);
    for (size_t i = 0; i < y.size(); ++i) y[i] *= scale[i / 10 % 3];
    return y;
  };
  expect_close(found[0], gradient_of(f, numbers, weights), 1e-4);
  Row products = map_rows(numbers, channels, normalized);
  for (size_t i = 0; i < products.size(); ++i) products[i] *= weights[i];
  expect_close(found[1], reduce_rows(products, channels, sum_of), 10 * tolerance_of("f32"));
  expect_close(found[2], reduce_rows(weights, channels, sum_of), 10 * tolerance_of("f32"));
}

}  // namespace
}  // namespace sinter::passes
