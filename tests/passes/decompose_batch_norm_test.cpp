// Batch norm by the statistics of its batch and the gradients of batch norm and group norm, decomposed and interpreted,
// against a few lines of double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "rows.h"

namespace sinter::passes {
namespace {

/// Images of six channels, and the elements of each.
struct Images {
  std::string_view type;  ///< without dtype
  std::vector<std::vector<size_t>> channels;
};

const std::vector<Images>& images() {
  static const std::vector<Images> all = {
      {"[2,6,2,2]", rows_of({2, 6, 2, 2}, {0, 2, 3})},
      {"[2,6,2,2]{24,1,12,6}", rows_of({2, 6, 2, 2}, {0, 2, 3})},
      {"[8,6]", rows_of({8, 6}, {0})},
  };
  return all;
}

constexpr double eps = 1e-5;

double inverse_of(const Row& row) { return 1 / std::sqrt(variance_of(row) + eps); }

Row normalized(const Row& row) {
  Row result;
  for (const double x : row) result.push_back((x - mean_of(row)) * inverse_of(row));
  return result;
}

/// Every row's elements times a number of its own, plus another.
Row scaled_rows(const Row& elements, const std::vector<std::vector<size_t>>& rows, const Row& weight, const Row& bias) {
  Row result(elements.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    for (const size_t place : rows[row]) result[place] = elements[place] * weight[row] + bias[row];
  }
  return result;
}

Row products(const Row& a, const Row& b) {
  Row result;
  for (size_t i = 0; i < a.size(); ++i) result.push_back(a[i] * b[i]);
  return result;
}

ir::HostTensor vector_of(std::string_view dtype, const Row& numbers) {
  const ir::Type type = drawn(fmt::format("{}[{}]", dtype, numbers.size()), 1).type;
  return tensor_of(type, std::vector<ir::RefValue>(numbers.begin(), numbers.end()));
}

std::string type_of(std::string_view dtype, std::string_view sizes) { return fmt::format("{}{}", dtype, sizes); }

TEST(DecomposeBatchNorm, gives_the_output_the_statistics_and_what_the_running_ones_become) {
  for (const Images& shape : images()) {
    for (const std::string_view dtype : {"f16", "f32", "f64"}) {
      const std::string_view wide = dtype == "f64" ? "f64" : "f32";
      const std::string graph = fmt::format(
          "graph @g on cuda:0 (%x: {0}, %w: {1}[6], %b: {1}[6], %m: {1}[6], %v: {1}[6]) -> (%y, %sm, %si, %rm, %rv) {{ "
          "%y, %sm, %si, %rm, %rv = call aten._native_batch_norm_legit_functional(%x, %w, %b, %m, %v, true, 0.25, "
          "1e-05) : {0}, {1}[6], {1}[6], {1}[6], {1}[6] }}",
          type_of(dtype, shape.type), wide);
      SCOPED_TRACE(graph);
      const auto x = drawn(type_of(dtype, shape.type), 1);
      std::vector<ir::HostTensor> inputs = {x};
      for (uint64_t seed = 2; seed < 6; ++seed) inputs.push_back(drawn(type_of(wide, "[6]"), seed));
      const auto found = decomposed(graph, inputs);
      ASSERT_EQ(found.size(), 5);
      const Row output = map_rows(numbers_of(x), shape.channels, normalized);
      expect_close(found[0], scaled_rows(output, shape.channels, numbers_of(inputs[1]), numbers_of(inputs[2])),
                   2 * tolerance_of(dtype));
      const Row mean = reduce_rows(numbers_of(x), shape.channels, mean_of);
      expect_close(found[1], mean, tolerance_of(wide));
      expect_close(found[2], reduce_rows(numbers_of(x), shape.channels, inverse_of), tolerance_of(wide));
      const Row variance = reduce_rows(numbers_of(x), shape.channels, variance_of);
      for (size_t i = 0; i < 6; ++i) {
        const double mean_kept = 0.75 * numbers_of(inputs[3])[i] + 0.25 * mean[i];
        EXPECT_NEAR(found[3][i], mean_kept, tolerance_of(wide));
        const double unbiased = variance[i] * 8 / 7;
        EXPECT_NEAR(found[4][i], 0.75 * numbers_of(inputs[4])[i] + 0.25 * unbiased, 2 * tolerance_of(wide));
      }
    }
  }
}

TEST(DecomposeBatchNorm, needs_no_weight_no_bias_and_no_running_statistics) {
  const auto x = drawn("f16[2,6,2,2]", 1);
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f16[2,6,2,2]) -> (%y) { %y, %m, %i = call "
      "aten._native_batch_norm_legit.no_stats(%x, none, none, true, 0.0, 1e-05) : f16[2,6,2,2], f32[6], f32[6] }",
      {x});
  expect_close(found.at(0), map_rows(numbers_of(x), images()[0].channels, normalized), 2 * tolerance_of("f16"));
}

TEST(DecomposeBatchNorm, a_channel_of_one_number_has_no_spread) {
  const auto x = tensor_of(drawn("f32[2,6,2,2]", 1).type, std::vector<ir::RefValue>(48, 0.1));
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f32[2,6,2,2]) -> (%y, %i) { %y, %m, %i = call "
      "aten._native_batch_norm_legit.no_stats(%x, none, none, true, 0.0, 1e-05) : f32[2,6,2,2], f32[6], f32[6] }",
      {x});
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0], Row(48, 0.0));
  EXPECT_EQ(found[1], Row(6, static_cast<double>(static_cast<float>(1 / std::sqrt(1e-5F)))));
}

/// A gradient call of a batch in f64 and f16: inputs are gradient, input, weight, and the statistics it is given.
struct BatchGradient {
  std::string_view call;
  bool of_batch = true;
};

TEST(DecomposeBatchNorm, has_the_gradients_of_the_function) {
  const std::vector<BatchGradient> calls = {
      {"native_batch_norm_backward(%g, %x, %w, none, none, %s, %t, true, 1e-05, [true, true, true])"},
      {"cudnn_batch_norm_backward(%x, %g, %w, none, none, %s, %t, 1e-05, %x)"},
      {"batch_norm_backward(%g, %x, %w, none, none, %s, %t, true, 1e-05, [true, true, true], %x)"},
      {"native_batch_norm_backward(%g, %x, %w, %s, %t, none, none, false, 1e-05, [true, true, true])", false},
  };
  for (const auto& [call, of_batch] : calls) {
    for (const Images& shape : images()) {
      for (const std::string_view dtype : {"f16", "f64"}) {
        const std::string_view wide = dtype == "f64" ? "f64" : "f32";
        const std::string graph = fmt::format(
            "graph @g on cuda:0 (%g: {0}, %x: {0}, %w: {1}[6], %s: {1}[6], %t: {1}[6]) -> (%i, %j, %k) {{ "
            "%i, %j, %k = call aten.{2} : {0}, {1}[6], {1}[6] }}",
            type_of(dtype, shape.type), wide, call);
        SCOPED_TRACE(graph);
        const auto g = drawn(type_of(dtype, shape.type), 1);
        const auto x = drawn(type_of(dtype, shape.type), 2);
        const auto w = drawn(type_of(wide, "[6]"), 3);
        const Row mean = reduce_rows(numbers_of(x), shape.channels, mean_of);
        const Row inverse = reduce_rows(numbers_of(x), shape.channels, inverse_of);
        const Row second = of_batch ? inverse : reduce_rows(numbers_of(x), shape.channels, variance_of);
        const auto found = decomposed(graph, {g, x, w, vector_of(wide, mean), vector_of(wide, second)});
        ASSERT_EQ(found.size(), 3);
        const Row centred = map_rows(numbers_of(x), shape.channels, normalized);
        const double tolerance = dtype == "f64" ? 1e-7 : 2 * tolerance_of(dtype);
        const auto f = [&](const Row& at) {
          const Row output = of_batch ? map_rows(at, shape.channels, normalized)
                                      : scaled_rows(at, shape.channels, inverse, Row(6, 0.0));
          return scaled_rows(output, shape.channels, numbers_of(w), Row(6, 0.0));
        };
        expect_close(found[0], gradient_of(f, numbers_of(x), numbers_of(g)), tolerance);
        expect_close(found[1], reduce_rows(products(numbers_of(g), centred), shape.channels, sum_of), tolerance);
        expect_close(found[2], reduce_rows(numbers_of(g), shape.channels, sum_of), tolerance);
      }
    }
  }
}

TEST(DecomposeGroupNorm, has_the_gradients_of_the_function) {
  const auto groups = rows_of({6, 16}, {1});
  const auto channels = rows_of({2, 6, 8}, {0, 2});
  for (const std::string_view mask : {"[true, true, true]", "[true, false, false]"}) {
    const bool all = mask.ends_with("true, true]");
    for (const std::string_view dtype : {"f16", "f64"}) {
      const std::string graph = fmt::format(
          "graph @g on cuda:0 (%g: {0}[2,6,2,4], %x: {0}[2,6,2,4], %m: {0}[2,3], %r: {0}[2,3], %w: {0}[6]) -> (%i{2}) "
          "{{ %i{2} = call aten.native_group_norm_backward(%g, %x, %m, %r, %w, 2, 6, 8, 3, {1}) : {0}[2,6,2,4]{3} }}",
          dtype, mask, all ? ", %j, %k" : "", all ? fmt::format(", {0}[6], {0}[6]", dtype) : "");
      SCOPED_TRACE(graph);
      const auto g = drawn(type_of(dtype, "[2,6,2,4]"), 1);
      const auto x = drawn(type_of(dtype, "[2,6,2,4]"), 2);
      const auto w = drawn(type_of(dtype, "[6]"), 3);
      const auto statistic = [&](const Reduced& of) {
        const Row numbers = reduce_rows(numbers_of(x), groups, of);
        return tensor_of(drawn(type_of(dtype, "[2,3]"), 1).type,
                         std::vector<ir::RefValue>(numbers.begin(), numbers.end()));
      };
      const auto found = decomposed(graph, {g, x, statistic(mean_of), statistic(inverse_of), w});
      ASSERT_EQ(found.size(), all ? 3 : 1);
      const auto f = [&](const Row& at) {
        return scaled_rows(map_rows(at, groups, normalized), channels, numbers_of(w), Row(6, 0.0));
      };
      const double tolerance = dtype == "f64" ? 1e-7 : 4 * tolerance_of(dtype);
      expect_close(found[0], gradient_of(f, numbers_of(x), numbers_of(g)), tolerance);
      if (!all) continue;
      const Row centred = map_rows(numbers_of(x), groups, normalized);
      expect_close(found[1], reduce_rows(products(numbers_of(g), centred), channels, sum_of), tolerance);
      expect_close(found[2], reduce_rows(numbers_of(g), channels, sum_of), tolerance);
    }
  }
}

}  // namespace
}  // namespace sinter::passes
