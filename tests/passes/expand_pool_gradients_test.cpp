// Max pools with their gradients, expanded and interpreted, against what LibTorch's own kernels do element by element.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "rows.h"

namespace sinter::passes {
namespace {

/// A pool of planes in row-major order.
struct Pool {
  int64_t planes, height, width;
  int64_t taps_high, taps_wide;

  [[nodiscard]] int64_t rows() const { return height / taps_high; }
  [[nodiscard]] int64_t columns() const { return width / taps_wide; }
  [[nodiscard]] size_t element(int64_t window, int64_t tap) const {
    const int64_t plane = window / (rows() * columns());
    const int64_t row = window / columns() % rows() * taps_high + tap / taps_wide;
    const int64_t column = window % columns() * taps_wide + tap % taps_wide;
    return static_cast<size_t>((plane * height + row) * width + column);
  }
};

struct Pooled {
  Row largest;
  Row gradient;
};

/// Of equal elements the first, of several NaN the last.
Pooled pooled(const Pool& pool, const Row& image, const Row& gradient) {
  Pooled result{{}, Row(image.size(), 0.0)};
  for (int64_t window = 0; window < pool.planes * pool.rows() * pool.columns(); ++window) {
    size_t most = pool.element(window, 0);
    for (int64_t tap = 1; tap < pool.taps_high * pool.taps_wide; ++tap) {
      const size_t next = pool.element(window, tap);
      if (image[next] > image[most] || std::isnan(image[next])) most = next;
    }
    result.largest.push_back(image[most]);
    result.gradient[most] = gradient[static_cast<size_t>(window)];
  }
  return result;
}

/// Elements of few numbers, so that many are equal; each fifth is NaN, and others are infinite.
ir::HostTensor with_ties(const std::string& type) {
  const ir::HostTensor tensor = drawn_with_specials(type, 1);
  std::vector<ir::RefValue> elements = ir::elements_of(tensor);
  for (size_t i = 0; i < elements.size(); ++i) {
    const double number = std::get<double>(elements[i]);
    elements[i] = i % 5 == 0 ? std::numeric_limits<double>::quiet_NaN() : std::round(number);
  }
  return ir::tensor_of(tensor.type, elements);
}

TEST(ExpandPoolGradients, go_to_the_largest_element_of_each_window) {
  const Pool pools[] = {{6, 4, 6, 2, 2}, {6, 7, 8, 2, 3}, {6, 9, 11, 4, 4}, {6, 5, 8, 1, 2}};
  for (const Pool& pool : pools) {
    for (const std::string_view dtype : {"f16", "f32"}) {
      const auto of = [&](int64_t h, int64_t w) { return fmt::format("{}[2,3,{},{}]", dtype, h, w); };
      const std::string image = of(pool.height, pool.width), small = of(pool.rows(), pool.columns());
      const std::string windows = fmt::format("[{}, {}], [], [0, 0], [1, 1], false", pool.taps_high, pool.taps_wide);
      const ir::HostTensor x = with_ties(image), d = drawn(small, 2);
      const auto found = with_pool_gradients(fmt::format(R"(graph @g on cuda:0 (%x: {0}, %d: {1}) -> (%y, %dx) {{
            %y, %i = call aten.max_pool2d_with_indices(%x, {2}) : {1}, i64[2,3,{3},{4}]
            %dx = call aten.max_pool2d_with_indices_backward(%d, %x, {2}, %i) : {0} }})",
                                                         image, small, windows, pool.rows(), pool.columns()),
                                             {x, d});
      const Pooled wanted = pooled(pool, numbers_of(x), numbers_of(d));
      EXPECT_NO_FATAL_FAILURE(expect_close(found.at(0), wanted.largest, 0)) << image;
      EXPECT_NO_FATAL_FAILURE(expect_close(found.at(1), wanted.gradient, 0)) << image;
    }
  }
}

}  // namespace
}  // namespace sinter::passes
