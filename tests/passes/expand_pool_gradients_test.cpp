// Max pools with their gradients, expanded and interpreted, against what LibTorch's own kernels do element by element.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/passes/pipeline.h"
#include "rows.h"

namespace sinter::passes {
namespace {

/// Windows along one axis.
struct Axis {
  int64_t size;
  int64_t taps;
  int64_t stride;
  int64_t padding = 0;

  [[nodiscard]] int64_t outputs() const { return (size + 2 * padding - taps) / stride + 1; }
};

/// A pool of two images of three channels, in row-major order.
struct Pool {
  Axis rows, columns;

  static constexpr int64_t planes = 6;
  [[nodiscard]] int64_t windows() const { return rows.outputs() * columns.outputs(); }
  /// The number of a tap of a window in its plane; nothing in the padding.
  [[nodiscard]] std::optional<int64_t> element(int64_t window, int64_t tap) const {
    const int64_t row = window / columns.outputs() * rows.stride - rows.padding + tap / columns.taps;
    const int64_t column = window % columns.outputs() * columns.stride - columns.padding + tap % columns.taps;
    const bool inside = row >= 0 && row < rows.size && column >= 0 && column < columns.size;
    return inside ? std::optional(row * columns.size + column) : std::nullopt;
  }
  [[nodiscard]] std::string type(std::string_view dtype) const {
    return fmt::format("{}[2,3,{},{}]", dtype, rows.size, columns.size);
  }
  [[nodiscard]] std::string pooled_type(std::string_view dtype) const {
    return fmt::format("{}[2,3,{},{}]", dtype, rows.outputs(), columns.outputs());
  }
  [[nodiscard]] std::string graph(std::string_view dtype, std::string_view outputs) const {
    const std::string numbers = fmt::format("[{}, {}], [{}, {}], [{}, {}], [1, 1], false", rows.taps, columns.taps,
                                            rows.stride, columns.stride, rows.padding, columns.padding);
    return fmt::format(R"(graph @g on cuda:0 (%x: {0}, %d: {1}) -> ({4}) {{
      %y, %i = call aten.max_pool2d_with_indices(%x, {3}) : {1}, {2}
      %dx = call aten.max_pool2d_with_indices_backward(%d, %x, {3}, %i) : {0} }})",
                       type(dtype), pooled_type(dtype), pooled_type("i64"), numbers, outputs);
  }
};

struct Pooled {
  Row largest;
  std::vector<int64_t> indices;
  Row gradient;
};

/// Of equal elements the first, of several NaN the last.
Pooled pooled(const Pool& pool, const Row& image, const Row& gradient) {
  Pooled result{{}, {}, Row(image.size(), 0.0)};
  const int64_t elements = pool.rows.size * pool.columns.size;
  for (int64_t window = 0; window < Pool::planes * pool.windows(); ++window) {
    const int64_t plane = window / pool.windows() * elements;
    const auto number = [&](int64_t element) { return image[static_cast<size_t>(plane + element)]; };
    std::optional<int64_t> most;
    for (int64_t tap = 0; tap < pool.rows.taps * pool.columns.taps; ++tap) {
      const auto next = pool.element(window % pool.windows(), tap);
      if (next && (!most || number(*next) > number(*most) || std::isnan(number(*next)))) most = next;
    }
    result.largest.push_back(number(*most));
    result.indices.push_back(*most);
    result.gradient[static_cast<size_t>(plane + *most)] += gradient[static_cast<size_t>(window)];
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

TEST(ExpandPoolGradients, of_windows_side_by_side_come_from_a_byte_each) {
  const Pool pools[] = {
      {{4, 2, 2}, {6, 2, 2}}, {{7, 2, 2}, {8, 3, 3}}, {{9, 4, 4}, {11, 4, 4}}, {{5, 1, 1}, {8, 2, 3}}};
  for (const Pool& pool : pools) {
    for (const std::string_view dtype : {"f16", "f32"}) {
      const ir::HostTensor x = with_ties(pool.type(dtype)), d = drawn(pool.pooled_type(dtype), 2);
      const auto found = with_pool_gradients(pool.graph(dtype, "%y, %dx"), {x, d});
      const Pooled wanted = pooled(pool, numbers_of(x), numbers_of(d));
      EXPECT_NO_FATAL_FAILURE(expect_close(found.at(0), wanted.largest, 0)) << pool.type(dtype);
      EXPECT_NO_FATAL_FAILURE(expect_close(found.at(1), wanted.gradient, 0)) << pool.type(dtype);
    }
  }
}

/// The graph after the pass, which takes the pool's indices as an input in place of LibTorch's call.
ir::Graph given_indices(const Pool& pool, std::string_view dtype) {
  ir::Graph graph = ir::parse(pool.graph(dtype, "%dx"));
  PassContext context;
  context.device.backend = Backend::cuda;
  run_pass("expand_pool_gradients", graph, context);
  std::string text = ir::print(graph);
  text.insert(text.find(") ->"), ", %i: " + pool.pooled_type("i64"));
  const size_t call = text.find("  %y, %i = ");
  text.erase(call, text.find('\n', call) - call);
  return ir::parse(text);
}

TEST(ExpandPoolGradients, of_windows_that_overlap_come_from_indices) {
  const Pool pools[] = {{{8, 3, 2, 1}, {6, 3, 2, 1}}, {{7, 3, 2}, {9, 3, 2}},        {{5, 3, 1, 1}, {6, 3, 1, 1}},
                        {{9, 2, 2, 1}, {8, 4, 2, 1}}, {{11, 4, 3, 2}, {4, 3, 3, 1}}, {{6, 2, 2}, {7, 3, 2, 1}}};
  for (const Pool& pool : pools) {
    for (const std::string_view dtype : {"f16", "f32"}) {
      const ir::HostTensor x = with_ties(pool.type(dtype)), d = drawn(pool.pooled_type(dtype), 2);
      const Pooled wanted = pooled(pool, numbers_of(x), numbers_of(d));
      const ir::HostTensor indices = integers(pool.pooled_type("i64"), wanted.indices);
      const auto found = ir::interpret(given_indices(pool, dtype), {{x, d, indices}, {}, {}});
      EXPECT_NO_FATAL_FAILURE(expect_close(numbers_of(found.at(0)), wanted.gradient, tolerance_of(dtype)))
          << pool.type(dtype);
    }
  }
}

}  // namespace
}  // namespace sinter::passes
