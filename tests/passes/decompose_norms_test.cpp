// Softmax, norms and their gradients, decomposed and interpreted, against a few lines of double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rows.h"

namespace sinter::passes {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::vector<std::string_view> floats = {"f16", "bf16", "f32", "f64"};
const std::vector<std::vector<size_t>> rows = rows_of({6, 16}, {1});

Row log_softmax_of(const Row& row) {
  const double largest = largest_of(row);
  Row exponentials;
  for (const double x : row) exponentials.push_back(std::exp(x - largest));
  Row result;
  for (const double x : row) result.push_back(x - largest - std::log(sum_of(exponentials)));
  return result;
}
Row safe_softmax_of(const Row& row) {
  const bool masked = std::ranges::all_of(row, [](double x) { return x == -infinity; });
  return masked ? Row(row.size(), 0.0) : softmax_of(row);
}
Row layer_norm_of(const Row& row) {
  Row result;
  for (const double x : row) result.push_back((x - mean_of(row)) / std::sqrt(variance_of(row) + 1e-5));
  return result;
}
double mean_square(Row row) {
  for (double& x : row) x *= x;
  return mean_of(row);
}
Row rms_norm_of(const Row& row) {
  Row result;
  for (const double x : row) result.push_back(x / std::sqrt(mean_square(row) + 1e-5));
  return result;
}
/// Elements times those of one row, plus those of another.
Row scaled(Row elements, const Row& weight, const Row& bias) {
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = elements[i] * weight[i % weight.size()] + bias[i % bias.size()];
  return elements;
}

struct Case {
  std::string_view call;
  Mapped wanted;
};

TEST(DecomposeSoftmax, computes_what_it_says_whatever_the_row_holds) {
  const std::vector<Case> cases = {
      {"_softmax(%x, -1, false)", softmax_of},
      {"_log_softmax(%x, 1, false)", log_softmax_of},
      {"_safe_softmax(%x, -1, none)", safe_softmax_of},
  };
  for (const auto& [call, wanted] : cases) {
    for (const std::string_view dtype : floats) {
      const std::string graph =
          fmt::format("graph @g on cuda:0 (%x: {0}[6,16]) -> (%y) {{ %y = call aten.{1} : {0}[6,16] }}", dtype, call);
      SCOPED_TRACE(graph);
      const std::string type = fmt::format("{}[6,16]", dtype);
      for (const ir::HostTensor& x : {drawn(type, 1), drawn_with_specials(type, 2)})
        expect_close(decomposed(graph, {x}).at(0), map_rows(numbers_of(x), rows, wanted), tolerance_of(dtype));
    }
  }
}

TEST(DecomposeSoftmax, of_halves_to_floats_is_not_rounded_to_halves) {
  const ir::HostTensor x = drawn("f16[6,16]", 1);
  for (const auto& [call, wanted] : {Case{"_softmax", softmax_of}, Case{"_log_softmax", log_softmax_of}}) {
    const std::string graph = fmt::format(
        "graph @g on cuda:0 (%x: f16[6,16]) -> (%y) {{ %y = call aten.{}(%x, 1, true) : f32[6,16] }}", call);
    expect_close(decomposed(graph, {x}).at(0), map_rows(numbers_of(x), rows, wanted), tolerance_of("f32"));
  }
}

TEST(DecomposeSoftmax, has_the_gradient_of_the_function) {
  for (const auto& [call, forward] : {Case{"_softmax", softmax_of}, Case{"_log_softmax", log_softmax_of}}) {
    const auto f = [&](const Row& x) { return map_rows(x, rows, forward); };
    const Row x = numbers_of(drawn("f64[6,16]", 1));
    const Row y = f(x);
    const ir::HostTensor gradient = drawn("f32[6,16]", 3);
    const ir::HostTensor output = tensor_of(gradient.type, std::vector<ir::RefValue>(y.begin(), y.end()));
    for (const std::string_view to : {"f32", "f16"}) {
      const std::string graph = fmt::format(
          "graph @g on cuda:0 (%g: f32[6,16], %y: f32[6,16]) -> (%x) {{ "
          "%x = call aten.{}_backward_data(%g, %y, 1, dtype({})) : {}[6,16] }}",
          call, to, to);
      SCOPED_TRACE(graph);
      expect_close(decomposed(graph, {gradient, output}).at(0), gradient_of(f, x, numbers_of(gradient)),
                   2 * tolerance_of(to));
    }
  }
}

TEST(DecomposeLayerNorm, gives_the_output_and_the_statistics_of_rows) {
  for (const std::string_view dtype : floats) {
    const std::string_view wide = dtype == "f64" ? "f64" : "f32";
    const std::string graph = fmt::format(
        "graph @g on cuda:0 (%x: {0}[6,16], %w: {0}[16], %b: {0}[16]) -> (%y, %m, %r) {{ "
        "%y, %m, %r = call aten.native_layer_norm(%x, [16], %w, %b, 1e-05) : {0}[6,16], {1}[6,1], {1}[6,1] }}",
        dtype, wide);
    SCOPED_TRACE(graph);
    const auto x = drawn(fmt::format("{}[6,16]", dtype), 1);
    const auto w = drawn(fmt::format("{}[16]", dtype), 2);
    const auto b = drawn(fmt::format("{}[16]", dtype), 3);
    const auto found = decomposed(graph, {x, w, b});
    ASSERT_EQ(found.size(), 3);
    const Row normalized = map_rows(numbers_of(x), rows, layer_norm_of);
    expect_close(found[0], scaled(normalized, numbers_of(w), numbers_of(b)), tolerance_of(dtype));
    expect_close(found[1], reduce_rows(numbers_of(x), rows, mean_of), tolerance_of(wide));
    const Reduced inverse = [](const Row& row) { return 1 / std::sqrt(variance_of(row) + 1e-5); };
    expect_close(found[2], reduce_rows(numbers_of(x), rows, inverse), tolerance_of(wide));
  }
}

TEST(DecomposeLayerNorm, takes_rows_of_several_dims_and_no_weight_or_bias) {
  const auto x = drawn("f32[6,4,4]", 1);
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f32[6,4,4]) -> (%y, %z) {"
      " %y, %m, %r = call aten.native_layer_norm(%x, [4, 4], none, none, 1e-05) : f32[6,4,4], f32[6,1,1], f32[6,1,1]"
      " %z, %s = call aten._fused_rms_norm(%x, [4, 4], none, 1e-05) : f32[6,4,4], f32[6,1,1] }",
      {x});
  ASSERT_EQ(found.size(), 2);
  expect_close(found[0], map_rows(numbers_of(x), rows, layer_norm_of), tolerance_of("f32"));
  expect_close(found[1], map_rows(numbers_of(x), rows, rms_norm_of), tolerance_of("f32"));
}

TEST(DecomposeLayerNorm, rms_norm_without_an_epsilon_takes_that_of_the_dtype_it_computes_in) {
  const std::vector<ir::RefValue> small(96, 1e-4);
  const auto x = tensor_of(drawn("f16[6,16]", 1).type, small);
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f16[6,16], %w: f16[16]) -> (%r) {"
      " %y, %r = call aten._fused_rms_norm(%x, [16], %w, none) : f16[6,16], f32[6,1] }",
      {x, drawn("f16[16]", 1)});
  const Reduced inverse = [](const Row& row) { return 1 / std::sqrt(mean_square(row) + 0x1p-23); };
  expect_close(found.at(0), reduce_rows(numbers_of(x), rows, inverse), tolerance_of("f32"));
}

/// A norm's gradient call, whose statistics are inputs after gradient, input and weight.
struct Backward {
  std::string_view call;
  Mapped forward;
  std::vector<Reduced> statistics;
};

TEST(DecomposeLayerNorm, has_the_gradient_of_the_function) {
  const Reduced deviation = [](const Row& row) { return 1 / std::sqrt(variance_of(row) + 1e-5); };
  const Reduced root = [](const Row& row) { return 1 / std::sqrt(mean_square(row) + 1e-5); };
  const std::vector<Backward> cases = {
      {"native_layer_norm_backward(%g, %x, [16], %s, %t, %w, none, [true, false, false])",
       layer_norm_of,
       {mean_of, deviation}},
      {"_fused_rms_norm_backward(%g, %x, [16], %s, %w, [true, false])", rms_norm_of, {root, root}},
  };
  for (const auto& [call, forward, statistics] : cases) {
    for (const std::string_view dtype : {"f16", "f64"}) {
      const std::string_view wide = dtype == "f64" ? "f64" : "f32";
      const std::string graph = fmt::format(
          "graph @g on cuda:0 (%g: {0}[6,16], %x: {0}[6,16], %w: {0}[16], %s: {1}[6,1], %t: {1}[6,1]) -> (%d) {{ "
          "%d = call aten.{2} : {0}[6,16] }}",
          dtype, wide, call);
      SCOPED_TRACE(graph);
      const auto g = drawn(fmt::format("{}[6,16]", dtype), 1);
      const auto x = drawn(fmt::format("{}[6,16]", dtype), 2);
      const auto w = drawn(fmt::format("{}[16]", dtype), 3);
      std::vector<ir::HostTensor> inputs = {g, x, w};
      for (const Reduced& statistic : statistics) {
        const Row of_rows = reduce_rows(numbers_of(x), rows, statistic);
        const ir::Type type = drawn(fmt::format("{}[6,1]", wide), 1).type;
        inputs.push_back(tensor_of(type, std::vector<ir::RefValue>(of_rows.begin(), of_rows.end())));
      }
      const auto f = [&](const Row& at) { return scaled(map_rows(at, rows, forward), numbers_of(w), Row(16, 0.0)); };
      const double tolerance = dtype == "f64" ? 1e-7 : tolerance_of(dtype);
      expect_close(decomposed(graph, inputs).at(0), gradient_of(f, numbers_of(x), numbers_of(g)), tolerance);
    }
  }
}

TEST(DecomposeLayerNorm, gradients_of_weight_and_bias_are_sums_over_the_rows) {
  const auto g = drawn("f16[6,16]", 1);
  const auto x = drawn("f16[6,16]", 2);
  const auto statistic = [&](const Reduced& of) {
    const Row numbers = reduce_rows(numbers_of(x), rows, of);
    return tensor_of(drawn("f32[6,1]", 1).type, std::vector<ir::RefValue>(numbers.begin(), numbers.end()));
  };
  const Reduced inverse = [](const Row& row) { return 1 / std::sqrt(variance_of(row) + 1e-5); };
  const Reduced root = [](const Row& row) { return 1 / std::sqrt(mean_square(row) + 1e-5); };
  const auto found = decomposed(
      "graph @g on cuda:0 (%g: f16[6,16], %x: f16[6,16], %w: f16[16], %m: f32[6,1], %i: f32[6,1], %r: f32[6,1]) -> "
      "(%gw, %gb, %rw) {"
      " %gw, %gb = call aten.native_layer_norm_backward(%g, %x, [16], %m, %i, %w, %w, [false, true, true]) : f16[16], "
      "f16[16]"
      " %rw = call aten._fused_rms_norm_backward(%g, %x, [16], %r, %w, [false, true]) : f16[16] }",
      {g, x, drawn("f16[16]", 3), statistic(mean_of), statistic(inverse), statistic(root)});
  ASSERT_EQ(found.size(), 3);
  const auto columns = rows_of({6, 16}, {0});
  const auto sums = [&](const Mapped& normalize) {
    Row products = map_rows(numbers_of(x), rows, normalize);
    for (size_t i = 0; i < products.size(); ++i) products[i] *= numbers_of(g)[i];
    return reduce_rows(products, columns, sum_of);
  };
  expect_close(found[0], sums(layer_norm_of), 2 * tolerance_of("f16"));
  expect_close(found[1], reduce_rows(numbers_of(g), columns, sum_of), 2 * tolerance_of("f16"));
  expect_close(found[2], sums(rms_norm_of), 2 * tolerance_of("f16"));
}

TEST(DecomposeGroupNorm, normalizes_groups_of_channels) {
  using Lying = std::pair<std::string_view, std::string_view>;
  for (const auto& [dtype, strides] : {Lying{"f16", ""}, Lying{"f32", ""}, Lying{"f64", ""},
                                       Lying{"f16", "{48,1,24,6}"}, Lying{"f32", "{48,1,24,6}"}}) {
    const std::string graph = fmt::format(
        "graph @g on cuda:0 (%x: {0}[2,6,2,4]{1}, %w: {0}[6], %b: {0}[6]) -> (%y, %z, %m, %r) {{ "
        "%c = call aten.contiguous(%x, 0) : {0}[2,6,2,4]"
        "%y, %m, %r = call aten.native_group_norm(%x, %w, %b, 2, 6, 8, 3, 1e-05) : {0}[2,6,2,4], {0}[2,3], {0}[2,3] "
        "%z, %0, %1 = call aten.native_group_norm(%c, %w, %b, 2, 6, 8, 3, 1e-05) : {0}[2,6,2,4], {0}[2,3], {0}[2,3] }}",
        dtype, strides);
    SCOPED_TRACE(graph);
    const auto x = drawn(fmt::format("{}[2,6,2,4]{}", dtype, strides), 1);
    const auto w = drawn(fmt::format("{}[6]", dtype), 2);
    const auto b = drawn(fmt::format("{}[6]", dtype), 3);
    const auto found = decomposed(graph, {x, w, b});
    ASSERT_EQ(found.size(), 4);
    Row wanted = map_rows(numbers_of(x), rows, layer_norm_of);
    for (size_t i = 0; i < wanted.size(); ++i)
      wanted[i] = wanted[i] * numbers_of(w)[i / 8 % 6] + numbers_of(b)[i / 8 % 6];
    expect_close(found[0], wanted, 2 * tolerance_of(dtype));
    expect_close(found[1], wanted, 2 * tolerance_of(dtype));
    expect_close(found[2], reduce_rows(numbers_of(x), rows, mean_of), tolerance_of(dtype));
  }
}

}  // namespace
}  // namespace sinter::passes
