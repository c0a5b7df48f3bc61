#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/graph_trial.h"

/// The kernels of small products of matrices, with what stands around them, emulated and compared with the interpreter.
namespace sinter::test {
namespace {

struct Sizes {
  int64_t rows, columns, inner;
};

constexpr Sizes sizes[] = {{8, 19, 228}, {1, 7, 1000}, {64, 32, 17}, {5, 1, 3}, {3, 70, 1}, {33, 9, 8}};

std::vector<ir::Graph> bodies_of_layer(const Sizes& size, std::string_view dtype, bool turned) {
  const std::string strides = turned ? fmt::format("{{1,{}}}", size.inner) : "";
  const std::string text = fmt::format(
      R"(graph @g on cuda:0 (%x: {0}[{1},{3}], %w: {0}[{3},{2}]{4}, %b: {0}[{2}]) -> (%y) {{
  %r = call aten.relu(%x) : {0}[{1},{3}]
  %p = call aten.addmm(%b, %r, %w, 1, 1) : {0}[{1},{2}]
  %y = call aten.tanh(%p) : {0}[{1},{2}]
}})",
      dtype, size.rows, size.columns, size.inner, strides);
  return bodies_of(compiled(text));
}

TEST(SmallProductKernels, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  for (const Sizes& size : sizes) {
    for (const std::string_view dtype : {"f16", "f32"}) {
      for (const bool turned : {false, true}) {
        const std::string name = fmt::format("{}x{}x{} {}", size.rows, size.inner, size.columns, dtype);
        const std::vector<ir::Graph> bodies = bodies_of_layer(size, dtype, turned);
        EXPECT_EQ(bodies.size(), 1U) << name;
        for (const ir::Graph& body : bodies) {
          trials.push_back(graph_trial(name, body, false, trials.size()));
          trials.back().slack = 32;  // products that cancel
        }
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

}  // namespace
}  // namespace sinter::test
