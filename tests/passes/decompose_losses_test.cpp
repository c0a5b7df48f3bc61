// Losses and their gradients, decomposed and interpreted, against a few lines of double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "rows.h"

namespace sinter::passes {
namespace {

using Curve = std::function<double(double)>;

constexpr double bound = 0.75;

/// A loss as a function of the difference of its operands.
struct LossOp {
  std::string_view name;
  std::string_view bound;  ///< beta or delta, as an argument
  Curve value;
  Curve slope;
};

double slope_within(double x, double inner, double outer) {
  if (std::isnan(x)) return x;
  return std::abs(x) < bound ? inner : std::copysign(outer, x);
}

const std::vector<LossOp>& losses() {
  static const std::vector<LossOp> rows = {
      {"mse_loss", "", [](double x) { return x * x; }, [](double x) { return 2 * x; }},
      {"smooth_l1_loss", ", 0.75",
       [](double x) { return std::abs(x) < bound ? x * x / 2 / bound : std::abs(x) - bound / 2; },
       [](double x) { return slope_within(x, x / bound, 1); }},
      {"huber_loss", ", 0.75",
       [](double x) { return std::abs(x) <= bound ? x * x / 2 : bound * (std::abs(x) - bound / 2); },
       [](double x) { return slope_within(x, x, bound); }},
  };
  return rows;
}

const std::vector<std::string_view> dtypes = {"f16", "bf16", "f32", "f64"};
const std::vector<std::string_view> devices = {"cuda:0", "cpu"};
constexpr int none = 0;
constexpr int mean = 1;
constexpr int sum = 2;

/// ATen takes several steps in a half.
double tolerance_of_steps(std::string_view dtype) { return 4 * tolerance_of(dtype); }

/// The tensor's elements, in the sizes that it broadcasts to.
Row spread(const ir::HostTensor& tensor, const std::vector<int64_t>& sizes) {
  const std::vector<int64_t> own = tensor.type.static_sizes();
  const Row elements = numbers_of(tensor);
  Row result;
  ir::for_each_point(sizes, [&](std::span<const int64_t> point) {
    size_t place = 0;
    for (size_t d = 0; d < own.size(); ++d) {
      const int64_t at = own[d] == 1 ? 0 : point[sizes.size() - own.size() + d];
      place = place * static_cast<size_t>(own[d]) + static_cast<size_t>(at);
    }
    result.push_back(elements[place]);
  });
  return result;
}

Row differences(const ir::HostTensor& a, const ir::HostTensor& b, const std::vector<int64_t>& sizes) {
  Row result = spread(a, sizes);
  const Row other = spread(b, sizes);
  for (size_t i = 0; i < result.size(); ++i) result[i] -= other[i];
  return result;
}

Row loss_of(const LossOp& op, Row x, int reduction) {
  std::ranges::transform(x, x.begin(), op.value);
  if (reduction == none) return x;
  return {reduction == mean ? mean_of(x) : sum_of(x)};
}

/// Sizes of both operands, and what they broadcast to.
struct Operands {
  std::string_view self;
  std::string_view target;
  std::string_view both = "[4,4,8]";
};

const std::vector<Operands> broadcasting = {
    {"[4,4,8]", "[4,4,8]"},
    {"[4,4,8]", "[8]"},
    {"[4,4,8]", "[]"},
    {"[4,1,8]", "[4,1]"},
    {"[4,4,8]{32,1,4}", "[4,4,8]{32,1,4}", "[4,4,8]{32,1,4}"},
};
const std::vector<int64_t> all_sizes = {4, 4, 8};

ir::HostTensor operand(std::string_view dtype, std::string_view sizes, uint64_t seed, bool specials = false) {
  const std::string type = fmt::format("{}{}", dtype, sizes);
  return specials ? drawn_with_specials(type, seed) : drawn(type, seed);
}

void check_loss(const LossOp& op, const Operands& sizes, std::string_view dtype, std::string_view device,
                bool specials) {
  const ir::HostTensor self = operand(dtype, sizes.self, 1, specials);
  const ir::HostTensor target = operand(dtype, sizes.target, 2);
  for (const int reduction : {none, mean, sum}) {
    const std::string graph = fmt::format(
        "graph @g on {} (%a: {}{}, %b: {}{}) -> (%l) {{ %l = call aten.{}(%a, %b, {}{}) : {}{} }}", device, dtype,
        sizes.self, dtype, sizes.target, op.name, reduction, op.bound, dtype, reduction == none ? sizes.both : "[]");
    SCOPED_TRACE(graph);
    const Row wanted = loss_of(op, differences(self, target, all_sizes), reduction);
    expect_close(decomposed(graph, {self, target}).at(0), wanted, tolerance_of_steps(dtype));
  }
}

TEST(DecomposeLosses, compute_what_they_say_and_broadcast) {
  for (const LossOp& op : losses()) {
    for (const std::string_view dtype : dtypes) {
      for (const std::string_view device : devices) {
        for (const Operands& sizes : broadcasting) check_loss(op, sizes, dtype, device, false);
        check_loss(op, broadcasting.front(), dtype, device, true);
      }
    }
  }
}

TEST(DecomposeLosses, promote_their_operands) {
  const ir::HostTensor self = drawn("f16[4,8]", 1);
  const ir::HostTensor target = drawn("i32[8]", 2);
  const ir::HostTensor other = drawn("f32[4,8]", 3);
  const auto found = decomposed(
      "graph @g on cuda:0 (%a: f16[4,8], %b: i32[8], %c: f32[4,8]) -> (%h, %w) {"
      " %h = call aten.mse_loss(%a, %b, 2) : f16[]"
      " %w = call aten.mse_loss(%a, %c, 1) : f32[] }",
      {self, target, other});
  const LossOp& mse = losses().front();
  expect_close(found.at(0), loss_of(mse, differences(self, target, {4, 8}), sum), tolerance_of_steps("f16"));
  expect_close(found.at(1), loss_of(mse, differences(self, other, {4, 8}), mean), tolerance_of("f32"));
}

TEST(DecomposeLosses, store_the_loss_of_an_element_as_a_half_before_they_join) {
  const ir::HostTensor large = ir::tensor_of(drawn("f16[2]", 1).type, std::vector<ir::RefValue>{300.0, 0.0});
  const ir::HostTensor zero = ir::zeros(large.type);
  const auto found =
      decomposed("graph @g on cuda:0 (%a: f16[2], %b: f16[2]) -> (%l) { %l = call aten.mse_loss(%a, %b, 1) : f16[] }",
                 {large, zero});
  EXPECT_EQ(found.at(0), Row{std::numeric_limits<double>::infinity()});
}

void check_gradient(const LossOp& op, const Operands& sizes, std::string_view upstream, std::string_view dtype,
                    std::string_view device, bool specials) {
  const ir::HostTensor gradient = operand(dtype, upstream, 3);
  const ir::HostTensor self = operand(dtype, sizes.self, 1, specials);
  const ir::HostTensor target = operand(dtype, sizes.target, 2);
  for (const int reduction : {none, mean, sum}) {
    const std::string graph = fmt::format(
        "graph @g on {0} (%g: {1}{2}, %a: {1}{3}, %b: {1}{4}) -> (%d) {{"
        " %d = call aten.{5}_backward(%g, %a, %b, {6}{7}) : {1}{3} }}",
        device, dtype, upstream, sizes.self, sizes.target, op.name, reduction, op.bound);
    SCOPED_TRACE(graph);
    Row wanted = differences(self, target, all_sizes);
    const Row weights = spread(gradient, all_sizes);
    const double count = reduction == mean ? static_cast<double>(wanted.size()) : 1;
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = op.slope(wanted[i]) * weights[i] / count;
    expect_close(decomposed(graph, {gradient, self, target}).at(0), wanted, tolerance_of_steps(dtype));
  }
}

TEST(DecomposeLosses, gradients_are_slopes_times_what_comes_from_above) {
  for (const LossOp& op : losses()) {
    for (const std::string_view dtype : dtypes) {
      for (const std::string_view device : devices) {
        for (const std::string_view upstream : {"[4,4,8]", "[]", "[1]", "[4,1,8]"}) {
          check_gradient(op, {"[4,4,8]", "[4,4,8]"}, upstream, dtype, device, false);
          check_gradient(op, {"[4,4,8]", "[4,4,8]"}, upstream, dtype, device, true);
        }
        check_gradient(op, {"[4,4,8]{32,1,4}", "[8]"}, "[]", dtype, device, false);
      }
    }
  }
}

/// As in ATen's kernels, a difference of 0 is beyond a bound of 0 on the CPU, and within it on CUDA.
TEST(DecomposeLosses, a_smooth_l1_loss_with_a_bound_of_0_is_the_distance) {
  const ir::HostTensor one = ir::tensor_of(drawn("f32[]", 1).type, std::vector<ir::RefValue>{1.0});
  const ir::HostTensor x = ir::tensor_of(drawn("f32[3]", 1).type, std::vector<ir::RefValue>{-2.0, 0.5, 0.0});
  const ir::HostTensor zero = ir::zeros(x.type);
  for (const std::string_view device : devices) {
    const auto found = decomposed(fmt::format("graph @g on {} (%g: f32[], %a: f32[3], %b: f32[3]) -> (%l, %d) {{"
                                              " %l = call aten.smooth_l1_loss(%a, %b, 0, 0.0) : f32[3]"
                                              " %d = call aten.smooth_l1_loss_backward(%g, %a, %b, 2, 0.0) : f32[3] }}",
                                              device),
                                  {one, x, zero});
    const double at_zero = device == "cpu" ? -1 : std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(found.at(0), (Row{2, 0.5, 0}));
    expect_close(found.at(1), {-1, 1, at_zero}, 0);
  }
}

Row log_sigmoid_of(Row x) {
  for (double& v : x) v = std::isnan(v) ? v : std::min(v, 0.0) - std::log1p(std::exp(-std::abs(v)));
  return x;
}

TEST(DecomposeLosses, log_sigmoid_comes_with_an_exponential_on_the_cpu) {
  for (const std::string_view dtype : dtypes) {
    const ir::HostTensor x = operand(dtype, "[8,4]", 1, true);
    Row exponentials = numbers_of(x);
    for (double& v : exponentials) v = std::exp(-std::abs(v));
    const auto found = decomposed(fmt::format("graph @g on cpu (%x: {0}[8,4]) -> (%y, %b) {{"
                                              " %y, %b = call aten.log_sigmoid_forward(%x) : {0}[8,4], {0}[8,4] }}",
                                              dtype),
                                  {x});
    ASSERT_EQ(found.size(), 2);
    expect_close(found[0], log_sigmoid_of(numbers_of(x)), tolerance_of(dtype));
    expect_close(found[1], exponentials, tolerance_of(dtype));
  }
}

TEST(DecomposeLosses, log_sigmoid_needs_no_buffer_on_cuda) {
  for (const std::string_view dtype : dtypes) {
    const ir::HostTensor x = operand(dtype, "[8,4]", 1, true);
    const auto found = decomposed(fmt::format("graph @g on cuda:0 (%x: {0}[8,4]) -> (%y) {{"
                                              " %y, %b = call aten.log_sigmoid_forward(%x) : {0}[8,4], {0}[0] }}",
                                              dtype),
                                  {x});
    expect_close(found.at(0), log_sigmoid_of(numbers_of(x)), tolerance_of(dtype));
  }
}

}  // namespace
}  // namespace sinter::passes
