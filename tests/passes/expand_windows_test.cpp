// Pools and depthwise convolutions, expanded and interpreted, against what they say element by element.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <limits>

#include "rows.h"

namespace sinter::passes {
namespace {

/// Windows along one axis.
struct Axis {
  int64_t size;
  int64_t outputs;
  int64_t taps;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;

  /// The element that a tap of a window is; nothing in the padding.
  [[nodiscard]] std::optional<int64_t> at(int64_t output, int64_t tap) const {
    const int64_t place = output * stride - padding + tap * dilation;
    return place >= 0 && place < size ? std::optional(place) : std::nullopt;
  }
};

/// Images of this many planes: for each window, its elements joined one by one by `join(joined, element, plane, tap)`.
template <class Join>
Row over_windows(const Row& image, int64_t planes, Axis high, Axis wide, double first, Join&& join) {
  Row result;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t output = 0; output < high.outputs * wide.outputs; ++output) {
      double joined = first;
      for (int64_t tap = 0; tap < high.taps * wide.taps; ++tap) {
        const auto h = high.at(output / wide.outputs, tap / wide.taps);
        const auto w = wide.at(output % wide.outputs, tap % wide.taps);
        if (!h || !w) continue;
        const double element = image[static_cast<size_t>((plane * high.size + *h) * wide.size + *w)];
        joined = join(joined, element, plane, tap);
      }
      result.push_back(joined);
    }
  }
  return result;
}

double larger(double a, double b, int64_t /*plane*/, int64_t /*tap*/) { return std::isnan(b) || b > a ? b : a; }

constexpr double lowest = -std::numeric_limits<double>::infinity();

TEST(ExpandWindows, max_pools_ignore_padding_and_pass_nan_on) {
  for (const std::string_view dtype : {"f16", "f32"}) {
    const ir::HostTensor x = drawn_with_specials(fmt::format("{}[2,3,7,8]", dtype), 1);
    const auto found = expanded(fmt::format(R"(graph @g on cuda:0 (%x: {0}[2,3,7,8]) -> (%y, %z) {{
      %y, %i = call aten.max_pool2d_with_indices(%x, [3, 3], [2, 2], [1, 1], [1, 1], true) : {0}[2,3,4,5], i64[2,3,4,5]
      %z, %j = call aten.max_pool2d_with_indices(%x, [2], [], [0], [2], false) : {0}[2,3,3,3], i64[2,3,3,3] }})",
                                            dtype),
                                {x});
    const Row image = numbers_of(x);
    EXPECT_NO_FATAL_FAILURE(
        expect_close(found.at(0), over_windows(image, 6, {7, 4, 3, 2, 1}, {8, 5, 3, 2, 1}, lowest, larger), 0));
    EXPECT_NO_FATAL_FAILURE(
        expect_close(found.at(1), over_windows(image, 6, {7, 3, 2, 2, 0, 2}, {8, 3, 2, 2, 0, 2}, lowest, larger), 0));
  }
}

TEST(ExpandWindows, average_pools_divide_as_told) {
  const ir::HostTensor x = drawn("f32[2,4,6,9]{216,1,36,4}", 2);
  const auto found = expanded(R"(graph @g on cuda:0 (%x: f32[2,4,6,9]{216,1,36,4}) -> (%p, %q, %r) {
    %p = call aten.avg_pool2d(%x, [3, 3], [1, 1], [1, 1], false, true, none) : f32[2,4,6,9]{216,1,36,4}
    %q = call aten.avg_pool2d(%x, [2, 3], [2, 3], [0, 0], false, false, 5) : f32[2,4,3,3]{36,1,12,4}
    %r = call aten._adaptive_avg_pool2d(%x, [2, 3]) : f32[2,4,2,3]{24,1,12,4} })",
                              {x});
  const Row image = numbers_of(x);
  const auto by = [](double divisor) {
    return [divisor](double sum, double element, int64_t, int64_t) { return sum + element / divisor; };
  };
  expect_close(found.at(0), over_windows(image, 8, {6, 6, 3, 1, 1}, {9, 9, 3, 1, 1}, 0, by(9)), 2e-6);
  expect_close(found.at(1), over_windows(image, 8, {6, 3, 2, 2}, {9, 3, 3, 3}, 0, by(5)), 2e-6);
  expect_close(found.at(2), over_windows(image, 8, {6, 2, 3, 3}, {9, 3, 3, 3}, 0, by(9)), 2e-6);
}

TEST(ExpandWindows, average_pools_count_what_lies_in_the_image) {
  const ir::HostTensor x = drawn("f32[2,4,6,9]", 8);
  const auto found = expanded(R"(graph @g on cuda:0 (%x: f32[2,4,6,9]) -> (%p, %q) {
    %p = call aten.avg_pool2d(%x, [3, 3], [1, 2], [1, 1], false, false, none) : f32[2,4,6,5]
    %q = call aten.avg_pool2d(%x, [4, 2], [2, 2], [0, 1], true, true, none) : f32[2,4,2,6] })",
                              {x});
  const Row image = numbers_of(x);
  const auto sum = [](double joined, double element, int64_t, int64_t) { return joined + element; };
  const auto one = [](double joined, double, int64_t, int64_t) { return joined + 1; };
  Row wanted = over_windows(image, 8, {6, 6, 3, 1, 1}, {9, 5, 3, 2, 1}, 0, sum);
  const Row counts = over_windows(image, 8, {6, 6, 3, 1, 1}, {9, 5, 3, 2, 1}, 0, one);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] /= counts[i];
  expect_close(found.at(0), wanted, 2e-6);
  wanted = over_windows(image, 8, {6, 2, 4, 2}, {9, 6, 2, 2, 1}, 0, sum);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] /= 8;
  expect_close(found.at(1), wanted, 2e-6);
}

struct Convolution {
  std::string_view dtype;
  std::string_view image;
  std::string_view result;
};

TEST(ExpandWindows, depthwise_convolutions_sum_products_of_each_channel) {
  for (const auto& [dtype, image, result] :
       {Convolution{"f16", "[2,4,6,9]{216,1,36,4}", "[2,4,3,7]{84,1,28,4}"},
        Convolution{"f32", "[2,4,6,9]", "[2,4,3,7]"}, Convolution{"bf16", "[2,4,6,9]", "[2,4,3,7]"}}) {
    const ir::HostTensor x = drawn(fmt::format("{}{}", dtype, image), 3);
    const ir::HostTensor w = drawn(fmt::format("{}[4,1,3,2]", dtype), 4);
    const ir::HostTensor b = drawn(fmt::format("{}[4]", dtype), 5);
    const auto found =
        expanded(fmt::format("graph @g on cuda:0 (%x: {0}{1}, %w: {0}[4,1,3,2], %b: {0}[4]) -> (%y) {{ %y = call "
                             "aten.convolution(%x, %w, %b, [2, 1], [1, 0], [1, 2], false, [0, 0], 4) : {0}{2} }}",
                             dtype, image, result),
                 {x, w, b});
    const Row weights = numbers_of(w);
    const Row bias = numbers_of(b);
    Row wanted = over_windows(numbers_of(x), 8, {6, 3, 3, 2, 1}, {9, 7, 2, 1, 0, 2}, 0,
                              [&](double sum, double element, int64_t plane, int64_t tap) {
                                return sum + element * weights[static_cast<size_t>(plane % 4 * 6 + tap)];
                              });
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += bias[i / 21 % 4];
    expect_close(found.at(0), wanted, tolerance_of(dtype) * 4);
  }
}

TEST(ExpandWindows, depthwise_convolutions_of_one_dim) {
  const ir::HostTensor x = drawn("f32[2,3,10]", 6);
  const ir::HostTensor w = drawn("f32[3,1,4]", 7);
  const auto found = expanded(
      "graph @g on cuda:0 (%x: f32[2,3,10], %w: f32[3,1,4]) -> (%y) {"
      " %y = call aten.convolution(%x, %w, none, [2], [2], [1], false, [0], 3) : f32[2,3,6] }",
      {x, w});
  const Row weights = numbers_of(w);
  const Row wanted = over_windows(numbers_of(x), 6, {1, 1, 1}, {10, 6, 4, 2, 2}, 0,
                                  [&](double sum, double element, int64_t plane, int64_t tap) {
                                    return sum + element * weights[static_cast<size_t>(plane % 3 * 4 + tap)];
                                  });
  expect_close(found.at(0), wanted, 4e-6);
}

}  // namespace
}  // namespace sinter::passes
