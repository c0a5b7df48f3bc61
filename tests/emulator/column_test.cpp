#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/cuda.h"
#include "compiler/ir/parse.h"
#include "tests/emulator/graph_trial.h"

/// Kernels that go once through rows which lie side by side, a vector of them a thread, emulated and compared with the
/// interpreter.
namespace sinter::test {
namespace {

/// {T} is a dtype, {P} points of a column, {C} columns.
constexpr std::string_view sums =
    R"(graph @g on cuda:0 (%x: {T}[{P},{C}], %w: f32[{C}], %b: f32[{C}]) -> (%y, %s, %q) {{
  %c = cast %x : f32[{P},{C}]
  %d = sub %c, %w : f32[{P},{C}]
  %m = maximum %d, %b : f32[{P},{C}]
  %y = cast %m : {T}[{P},{C}]
  %t = reduce sum %m over 0 : f32[1,{C}]
  %s = mul %t, %w : f32[1,{C}]
  %a = mul %d, %d : f32[{P},{C}]
  %q = reduce sum %a over 0 : f32[1,{C}]
}})";

/// Rows over two loops with columns between them in the order of dims, and a number that all columns share.
constexpr std::string_view outermost_and_middle =
    R"(graph @g on cuda:0 (%x: {T}[3,{C},{P}]{{{CP},1,{C}}}, %n: f32[3,1,1]) -> (%s) {{
  %c = cast %x : f32[3,{C},{P}]
  %d = mul %c, %n : f32[3,{C},{P}]
  %s = reduce max %d over 0, 2 : f32[1,{C},1]
}})";

constexpr std::string_view predicates = R"(graph @g on cuda:0 (%x: {T}[{P},{C}]) -> (%l, %a, %o) {{
  %l = gt %x, 1 : b8[{P},{C}]
  %a = reduce all %l over 0 : b8[1,{C}]
  %o = reduce any %l over 0 : b8[1,{C}]
}})";

/// Columns of blocks, as sums in two parts have them.
constexpr std::string_view parts = R"(graph @g on cuda:0 (%x: {T}[5,{P},{C}], %w: f32[{C}]) -> (%s) {{
  %c = cast %x : f32[5,{P},{C}]
  %d = add %c, %w : f32[5,{P},{C}]
  %s = reduce sum %d over 1 : f32[5,1,{C}]
}})";

struct Columns {
  int64_t points, columns;
};
constexpr Columns sizes[] = {{2, 8}, {2, 512}, {4, 256}, {7, 16}, {37, 24}, {300, 96}, {64, 264}, {600, 32}};

TEST(ColumnKernels, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  const auto add = [&](std::string_view text, const Columns& size, std::string_view dtype) {
    const std::string graph = fmt::format(fmt::runtime(text), fmt::arg("T", dtype), fmt::arg("P", size.points),
                                          fmt::arg("C", size.columns), fmt::arg("CP", size.columns * size.points));
    trials.push_back(
        graph_trial(fmt::format("{} columns {}", size.columns, dtype), ir::parse(graph), false, trials.size()));
    trials.back().slack = 64;  // products, and sums that cancel
    EXPECT_NE(trials.back().source.comment.find("columns, "), std::string::npos) << trials.back().source.text;
  };
  for (const Columns& size : sizes) {
    for (const std::string_view dtype : {"f16", "bf16", "f32"}) {
      add(sums, size, dtype);
      add(outermost_and_middle, size, dtype);
      add(parts, size, dtype);
    }
    for (const std::string_view dtype : {"i32", "f64"}) add(predicates, size, dtype);
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

/// A store over an operand waits for passes that read that again, and here are none.
TEST(ColumnKernels, write_over_what_they_have_read) {
  const std::string graph = fmt::format(fmt::runtime(sums), fmt::arg("T", "f32"), fmt::arg("P", 300), fmt::arg("C", 96),
                                        fmt::arg("CP", 300 * 96));
  kernel::Kernel kernel = graph_trial("over", ir::parse(graph), false, 1).kernel;
  const uint32_t x = 0, y = kernel.stores.front().param;
  kernel.params[x].in_place = kernel.params[y].in_place = true;
  const KernelSource source = codegen::generate_cuda(kernel, test_device());
  EXPECT_NE(source.comment.find("columns, "), std::string::npos) << source.text;
}

/// Five columns are no vectors; a softmax goes through its rows again.
TEST(ColumnKernels, are_others_where_vectors_do_not_fit) {
  const auto comment = [](const std::string& text) {
    return graph_trial("other", ir::parse(text), false, 1).source.comment;
  };
  const std::string five =
      comment("graph @g on cuda:0 (%x: f32[64,5]) -> (%s) { %s = reduce sum %x over 0 : f32[1,5] }");
  EXPECT_EQ(five.find("columns, "), std::string::npos) << five;
  const std::string twice = comment(R"(graph @g on cuda:0 (%x: f32[64,32]) -> (%y) {
    %s = reduce sum %x over 0 : f32[1,32]
    %y = div %x, %s : f32[64,32]
  })");
  EXPECT_EQ(twice.find("columns, "), std::string::npos) << twice;
}

}  // namespace
}  // namespace sinter::test
