// Bilinear interpolation, expanded and interpreted, against what LibTorch's kernels do element by element.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "rows.h"

namespace sinter::passes {
namespace {

constexpr int64_t images = 2, channels = 3;

/// An axis of an image that is made `factor` times as long.
struct Axis {
  int64_t size;
  int64_t factor;

  [[nodiscard]] int64_t length() const { return size * factor; }
};

/// The two elements of an axis that one of the result lies between, and the share of the second.
struct Between {
  int64_t first, second;
  double share;
};

Between place(Axis axis, int64_t i) {
  const double middle = (static_cast<double>(i) + 0.5) / static_cast<double>(axis.factor) - 0.5;
  const double at = std::max(0.0, middle);
  const auto first = static_cast<int64_t>(at);
  return {first, std::min(first + 1, axis.size - 1), at - static_cast<double>(first)};
}

Row interpolated(const Row& image, Axis high, Axis wide) {
  Row result;
  for (int64_t plane = 0; plane < images * channels; ++plane) {
    const auto at = [&](int64_t h, int64_t w) {
      return image[static_cast<size_t>((plane * high.size + h) * wide.size + w)];
    };
    for (int64_t i = 0; i < high.length() * wide.length(); ++i) {
      const Between h = place(high, i / wide.length()), w = place(wide, i % wide.length());
      const double above = at(h.first, w.first) * (1 - w.share) + at(h.first, w.second) * w.share;
      const double below = at(h.second, w.first) * (1 - w.share) + at(h.second, w.second) * w.share;
      result.push_back(above * (1 - h.share) + below * h.share);
    }
  }
  return result;
}

std::string type_of(std::string_view dtype, int64_t height, int64_t width, bool channels_last) {
  const int64_t pixels = height * width;
  const std::string strides = channels_last
                                  ? fmt::format("{{{},1,{},{}}}", channels * pixels, channels * width, channels)
                                  : fmt::format("{{{},{},{},1}}", channels * pixels, pixels, width);
  return fmt::format("{}[{},{},{},{}]{}", dtype, images, channels, height, width, strides);
}

void expect_interpolated(std::string_view dtype, Axis high, Axis wide, bool channels_last) {
  const std::string from = type_of(dtype, high.size, wide.size, channels_last);
  const std::string to = type_of(dtype, high.length(), wide.length(), channels_last);
  const ir::HostTensor x = drawn(from, 7);
  const auto found =
      upsampled(fmt::format("graph @g on cuda:0 (%x: {}) -> (%y) {{\n"
                            "  %y = call aten.upsample_bilinear2d(%x, [{}, {}], false, none, {}.0) : {}\n}}\n",
                            from, high.length(), wide.length(), wide.factor, to),
                {x});
  EXPECT_NO_FATAL_FAILURE(expect_close(found.at(0), interpolated(numbers_of(x), high, wide), tolerance_of(dtype)))
      << to;
}

TEST(ExpandUpsampling, weighs_the_neighbours_that_libtorch_weighs) {
  for (const bool channels_last : {false, true}) {
    for (const Axis high : {Axis{3, 2}, Axis{4, 1}, Axis{2, 5}, Axis{1, 4}}) {
      for (const Axis wide : {Axis{4, 2}, Axis{2, 3}, Axis{3, 8}, Axis{2, 16}}) {
        expect_interpolated("f32", high, wide, channels_last);
      }
    }
    expect_interpolated("f16", {3, 4}, {5, 2}, channels_last);
    expect_interpolated("bf16", {3, 2}, {2, 7}, channels_last);
  }
}

}  // namespace
}  // namespace sinter::passes
