// Linear interpolation, expanded and interpreted, against what LibTorch's kernels do element by element.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rows.h"

namespace sinter::passes {
namespace {

constexpr int64_t images = 2, channels = 3;

/// An axis of an image that is made as long as `length`; corners lie on corners where `aligns`.
struct Axis {
  int64_t size;
  int64_t length;
  bool aligns = false;
};
using Axes = std::vector<Axis>;

Axis times(int64_t size, int64_t factor) { return {size, size * factor}; }

/// The two elements of an axis that one of the result lies between, and the share of the second.
struct Between {
  int64_t first, second;
  double share;
};

Between place(Axis axis, int64_t i) {
  const auto ends = static_cast<double>(std::max<int64_t>(axis.length - 1, 1));
  const double step = axis.aligns ? static_cast<double>(axis.size - 1) / ends
                                  : static_cast<double>(axis.size) / static_cast<double>(axis.length);
  const double middle = axis.aligns ? 0.0 : 0.5;
  const double at = std::max(0.0, (static_cast<double>(i) + middle) * step - middle);
  const auto first = static_cast<int64_t>(at);
  return {first, std::min(first + 1, axis.size - 1), at - static_cast<double>(first)};
}

/// What lies at a point of the result along these axes, the image's elements from `base` on being theirs.
double blended(const Row& image, std::span<const Axis> axes, std::span<const int64_t> point, int64_t base) {
  if (axes.empty()) return image[static_cast<size_t>(base)];
  const Between here = place(axes[0], point[0]);
  const auto at = [&](int64_t element) {
    return blended(image, axes.subspan(1), point.subspan(1), base * axes[0].size + element);
  };
  return at(here.first) * (1 - here.share) + at(here.second) * here.share;
}

Row interpolated(const Row& image, const Axes& axes) {
  std::vector<int64_t> extents = {images * channels};
  for (const Axis axis : axes) extents.push_back(axis.length);
  Row result;
  ir::for_each_point(extents, [&](std::span<const int64_t> point) {
    result.push_back(blended(image, axes, point.subspan(1), point[0]));
  });
  return result;
}

std::string type_of(std::string_view dtype, const std::vector<int64_t>& pixels, bool channels_last) {
  std::vector<int64_t> strides(pixels.size());
  int64_t stride = channels_last ? channels : 1;
  for (size_t axis = pixels.size(); axis-- > 0; stride *= pixels[axis]) strides[axis] = stride;
  const int64_t of_image = channels_last ? stride : stride * channels;
  return fmt::format("{}[{},{},{}]{{{},{},{}}}", dtype, images, channels, fmt::join(pixels, ","), of_image,
                     channels_last ? 1 : stride, fmt::join(strides, ","));
}

void expect_interpolated(std::string_view dtype, const Axes& axes, bool channels_last) {
  constexpr std::array ops = {"upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"};
  std::vector<int64_t> sizes, lengths;
  std::string scales;
  for (const Axis axis : axes) {
    sizes.push_back(axis.size);
    lengths.push_back(axis.length);
    const int64_t factor = axis.length / axis.size;
    const bool is_given = axis.length % axis.size == 0 && factor % 2 == 0 && !axis.aligns;
    scales += is_given ? fmt::format(", {}.0", factor) : ", none";
  }
  const std::string from = type_of(dtype, sizes, channels_last), to = type_of(dtype, lengths, channels_last);
  const ir::HostTensor x = drawn(from, 7);
  const std::string graph = fmt::format(
      "graph @g on cuda:0 (%x: {}) -> (%y) {{\n"
      "  %y = call aten.{}(%x, [{}], {}{}) : {}\n}}\n",
      from, ops.at(axes.size() - 1), fmt::join(lengths, ", "), axes[0].aligns, scales, to);
  const auto found = upsampled(graph, {x});
  EXPECT_NO_FATAL_FAILURE(expect_close(found.at(0), interpolated(numbers_of(x), axes), tolerance_of(dtype))) << graph;
}

TEST(ExpandUpsampling, weighs_the_neighbours_that_libtorch_weighs) {
  for (const bool channels_last : {false, true}) {
    for (const Axis high : {times(3, 2), times(4, 1), times(2, 5), times(1, 4)}) {
      for (const Axis wide : {times(4, 2), times(2, 3), times(3, 8), times(2, 16)}) {
        expect_interpolated("f32", {high, wide}, channels_last);
      }
    }
    expect_interpolated("f16", {times(3, 4), times(5, 2)}, channels_last);
    expect_interpolated("bf16", {times(3, 2), times(2, 7)}, channels_last);
    expect_interpolated("f32", {times(5, 3)}, channels_last);
    expect_interpolated("f16", {times(2, 2), times(3, 2), times(2, 4)}, channels_last);
    expect_interpolated("f32", {times(2, 3), times(1, 2), times(3, 1)}, channels_last);
  }
}

TEST(ExpandUpsampling, weighs_them_at_any_place) {
  for (const bool channels_last : {false, true}) {
    for (const bool aligns : {false, true}) {
      for (const Axis high : {Axis{3, 5, aligns}, Axis{4, 4, aligns}, Axis{7, 3, aligns}, Axis{2, 1, aligns}}) {
        for (const Axis wide : {Axis{4, 9, aligns}, Axis{2, 40, aligns}, Axis{5, 10, aligns}}) {
          expect_interpolated("f32", {high, wide}, channels_last);
        }
      }
      expect_interpolated("f16", {{3, 4, aligns}, {5, 7, aligns}}, channels_last);
      expect_interpolated("f32", {{5, 8, aligns}}, channels_last);
      expect_interpolated("bf16", {{2, 3, aligns}, {3, 5, aligns}, {2, 5, aligns}}, channels_last);
    }
  }
}

}  // namespace
}  // namespace sinter::passes
