// Calls that reduce to one value a row, decomposed and interpreted, against a few lines of double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/ir/parse.h"
#include "rows.h"

namespace sinter::passes {
namespace {

enum class Result : uint8_t { same, wide_integers, flags };

/// One overload: {0} stands for the dims, {1} for keepdim.
struct Reduction {
  std::string_view call;
  Reduced wanted;
  Result result = Result::same;
  std::vector<std::string_view> dtypes;
  std::string_view other_result = {};  ///< "i64" where the call has a second one
};

const std::vector<std::string_view> floats = {"f16", "bf16", "f32", "f64"};
const std::vector<std::string_view> numbers = {"f16", "f32", "f64", "i32", "i64", "u8"};
const std::vector<std::string_view> everything = {"f16", "f32", "i32", "b8", "u8"};

double smallest_of(Row row) {
  for (double& x : row) x = -x;
  return -largest_of(row);
}
double product_of(const Row& row) {
  double product = 1;
  for (const double x : row) product *= x;
  return product;
}
double any_of(const Row& row) {
  return std::ranges::any_of(row, [](double x) { return x != 0; }) ? 1 : 0;
}
double all_of(const Row& row) {
  return std::ranges::all_of(row, [](double x) { return x != 0; }) ? 1 : 0;
}
double logsumexp_of(const Row& row) {
  const double largest = largest_of(row);
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (const double x : row) sum += std::exp(x - largest);
  return std::log(sum) + largest;
}

template <int correction>
double corrected(const Row& row) {
  return variance_of(row) * static_cast<double>(row.size()) / (static_cast<double>(row.size()) - correction);
}
template <int correction>
double deviation(const Row& row) {
  return std::sqrt(corrected<correction>(row));
}

Row magnitudes(Row row) {
  for (double& x : row) x = std::abs(x);
  return row;
}
double norm_0(const Row& row) {
  return static_cast<double>(row.size()) - static_cast<double>(std::ranges::count(row, 0.0));
}
double norm_2(Row row) {
  for (double& x : row) x *= x;
  return std::sqrt(sum_of(row));
}

const std::vector<Reduction>& along_dims() {
  static const std::vector<Reduction> rows = {
      {"sum.dim_IntList(%x, {0}, {1}, none)", sum_of, Result::wide_integers, everything},
      {"mean.dim(%x, {0}, {1}, none)", mean_of, Result::same, floats},
      {"amax(%x, {0}, {1})", largest_of, Result::same, everything},
      {"amin(%x, {0}, {1})", smallest_of, Result::same, everything},
      {"any.dims(%x, {0}, {1})", any_of, Result::flags, everything},
      {"all.dims(%x, {0}, {1})", all_of, Result::flags, everything},
      {"var.correction(%x, {0}, none, {1})", corrected<1>, Result::same, floats},
      {"var.correction(%x, {0}, 0, {1})", corrected<0>, Result::same, floats},
      {"std.correction(%x, {0}, 2.0, {1})", deviation<2>, Result::same, floats},
      {"linalg_vector_norm(%x, 2, {0}, {1}, none)", norm_2, Result::same, floats},
      {"linalg_vector_norm(%x, 0.0, {0}, {1}, none)", norm_0, Result::same, floats},
      {"linalg_vector_norm(%x, 1, {0}, {1}, none)", [](const Row& row) { return sum_of(magnitudes(row)); },
       Result::same, floats},
      {"linalg_vector_norm(%x, inf, {0}, {1}, none)", [](const Row& row) { return largest_of(magnitudes(row)); },
       Result::same, floats},
      {"linalg_vector_norm(%x, -inf, {0}, {1}, none)", [](const Row& row) { return smallest_of(magnitudes(row)); },
       Result::same, floats},
      {"norm.ScalarOpt_dim(%x, none, {0}, {1})", norm_2, Result::same, floats},
      {"logsumexp(%x, {0}, {1})", logsumexp_of, Result::same, floats},
  };
  return rows;
}

const std::vector<Reduction>& along_one_dim() {
  static const std::vector<Reduction> rows = {
      {"prod.dim_int(%x, {0}, {1}, none)", product_of, Result::wide_integers, numbers},
      {"any.dim(%x, {0}, {1})", any_of, Result::flags, everything},
      {"all.dim(%x, {0}, {1})", all_of, Result::flags, everything},
      {"max.dim(%x, {0}, {1})", largest_of, Result::same, everything, "i64"},
      {"min.dim(%x, {0}, {1})", smallest_of, Result::same, everything, "i64"},
  };
  return rows;
}

const std::vector<Reduction>& along_all_dims() {
  static const std::vector<Reduction> rows = {
      {"sum(%x, none)", sum_of, Result::wide_integers, everything},
      {"prod(%x, none)", product_of, Result::wide_integers, {"f64", "i64"}},
      {"mean(%x, none)", mean_of, Result::same, floats},
      {"max(%x)", largest_of, Result::same, everything},
      {"min(%x)", smallest_of, Result::same, everything},
      {"any(%x)", any_of, Result::flags, everything},
      {"all(%x)", all_of, Result::flags, everything},
      {"norm.Scalar(%x, 2)", norm_2, Result::same, floats},
  };
  return rows;
}

std::string_view result_dtype(const Reduction& reduction, std::string_view dtype) {
  const bool is_float = std::ranges::count(floats, dtype) > 0;
  if (reduction.result == Result::flags) return dtype == "u8" ? "u8" : "b8";
  return reduction.result == Result::wide_integers && !is_float ? "i64" : dtype;
}

/// A shape with strides, and dims that are its fastest.
struct Shape {
  std::string_view sizes;
  std::string_view named;
  std::vector<int64_t> dims;
  std::string_view kept;
  std::string_view dropped;
};

void check(const Reduction& reduction, const Shape& shape, bool keep) {
  for (const std::string_view dtype : reduction.dtypes) {
    const std::string_view to = result_dtype(reduction, dtype);
    const std::string_view sizes = keep ? shape.kept : shape.dropped;
    const std::string call = fmt::format(fmt::runtime(reduction.call), shape.named, keep);
    const std::string type = fmt::format("{}{}", dtype, shape.sizes);
    const bool two = !reduction.other_result.empty();
    const std::string graph =
        fmt::format("graph @g on cuda:0 (%x: {}) -> (%y) {{ %y{} = call aten.{} : {}{}{} }}", type, two ? ", %i" : "",
                    call, to, sizes, two ? fmt::format(", {}{}", reduction.other_result, sizes) : "");
    SCOPED_TRACE(graph);
    const bool floating = std::ranges::count(floats, dtype) > 0;
    for (const bool specials : {false, true}) {
      if (specials && !floating) continue;
      const ir::HostTensor x = specials ? drawn_with_specials(type, 2) : drawn(type, 1);
      const auto rows = rows_of(x.type.static_sizes(), shape.dims);
      const std::vector<Row> found = decomposed(graph, {x});
      ASSERT_EQ(found.size(), 1);
      // logsumexp rounds halves at every step
      const double tolerance = tolerance_of(to) * (reduction.call.starts_with("logsumexp") ? 4 : 1);
      expect_close(found[0], reduce_rows(numbers_of(x), rows, reduction.wanted), tolerance);
    }
  }
}

TEST(DecomposeReductions, compute_what_they_say_along_several_dims) {
  const std::vector<Shape> shapes = {
      {"[4,4,8]", "[2]", {2}, "[4,4,1]", "[4,4]"},
      {"[4,4,8]", "[-1, 1]", {1, 2}, "[4,1,1]", "[4]"},
      {"[4,8,4]{32,1,8}", "[-2]", {1}, "[4,1,4]", "[4,4]"},
      {"[4,4,8]", "none", {0, 1, 2}, "[1,1,1]", "[]"},
      {"[8,4,4]{4,32,1}", "[-1]", {2}, "[8,4,1]{1,8,1}", "[8,4]{1,8}"},
  };
  for (const Reduction& reduction : along_dims()) {
    for (const Shape& shape : shapes) {
      // amax and logsumexp take no None
      if (shape.named == "none" && (reduction.call.starts_with("am") || reduction.call.starts_with("log"))) continue;
      for (const bool keep : {false, true}) check(reduction, shape, keep);
    }
  }
}

TEST(DecomposeReductions, compute_what_they_say_along_one_dim) {
  for (const Reduction& reduction : along_one_dim()) {
    for (const bool keep : {false, true}) check(reduction, {"[4,4,8]", "-1", {2}, "[4,4,1]", "[4,4]"}, keep);
  }
}

TEST(DecomposeReductions, convert_to_the_dtype_asked_for_before_they_join) {
  struct Conversion {
    std::string_view call, from, to;
  };
  for (const auto& [call, from, to] :
       {Conversion{"sum", "f16", "f32"}, Conversion{"sum", "i32", "f32"}, Conversion{"sum", "f32", "i64"},
        Conversion{"prod", "b8", "f64"}, Conversion{"mean", "u8", "f32"}, Conversion{"mean", "f32", "f64"}}) {
    const std::string graph = fmt::format(
        "graph @g on cuda:0 (%x: {0}[4,8]) -> (%y) {{ %y = call aten.{1}(%x, dtype({2})) : {2}[] }}", from, call, to);
    SCOPED_TRACE(graph);
    const ir::HostTensor x = drawn(fmt::format("{}[4,8]", from), 1);
    Row converted = numbers_of(x);
    if (to == "i64") std::ranges::transform(converted, converted.begin(), [](double v) { return std::trunc(v); });
    const double wanted = call == "sum"    ? sum_of(converted)
                          : call == "mean" ? mean_of(converted)
                                           : product_of(converted);
    expect_close(decomposed(graph, {x}).at(0), {wanted}, tolerance_of(to));
  }
}

TEST(DecomposeReductions, a_variance_comes_with_its_mean) {
  const ir::HostTensor x = drawn("f16[4,8]", 1);
  const auto rows = rows_of({4, 8}, {1});
  const auto found = decomposed(
      "graph @g on cuda:0 (%x: f16[4,8]) -> (%v, %m, %s, %n) {"
      " %v, %m = call aten.var_mean.correction(%x, [1], none, false) : f16[4], f16[4]"
      " %s, %n = call aten.std_mean.correction(%x, [1], none, true) : f16[4,1], f16[4,1] }",
      {x});
  ASSERT_EQ(found.size(), 4);
  expect_close(found[0], reduce_rows(numbers_of(x), rows, corrected<1>), tolerance_of("f16"));
  expect_close(found[2], reduce_rows(numbers_of(x), rows, deviation<1>), tolerance_of("f16"));
  for (const size_t mean : {1, 3}) {
    expect_close(found[mean], reduce_rows(numbers_of(x), rows, mean_of), tolerance_of("f16"));
  }
}

TEST(DecomposeReductions, compute_what_they_say_along_all_dims) {
  for (const Reduction& reduction : along_all_dims()) check(reduction, {"[4,2,4]", "", {0, 1, 2}, "[]", "[]"}, false);
}

}  // namespace
}  // namespace sinter::passes
