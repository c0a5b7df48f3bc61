#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/parse.h"
#include "tests/emulator/graph_trial.h"
#include "tests/llvm/joins.h"

/// Kernels that read operands of joins under guards, emulated and compared with the interpreter. The operands' memory
/// ends with their last element, so the address sanitizer sees what a guard lets through.
namespace sinter::test {
namespace {

constexpr std::string_view softmax = R"(graph @g on cuda:0 (%a: {T}[{R},{A}], %b: {T}[{R},{B}]) -> (%y, %m) {{
  %j = join %a, %b over 1 : {T}[{R},{N}]
  %c = cast %j : f32[{R},{N}]
  %m = reduce max %c over 1 : f32[{R},1]
  %d = sub %c, %m : f32[{R},{N}]
  %e = exp %d : f32[{R},{N}]
  %s = reduce sum %e over 1 : f32[{R},1]
  %q = div %e, %s : f32[{R},{N}]
  %y = cast %q : {T}[{R},{N}]
}})";

/// Rows of which some come whole from either operand.
constexpr std::string_view whole_rows =
    R"(graph @g on cuda:0 (%a: {T}[{R},{N}], %b: {T}[{R},{N}], %w: f32[{R},1]) -> (%m) {{
  %v = cast 2 : f32[{R},1]
  %f = join %w, %v over 0 : f32[{R2},1]
  %j = join %a, %b over 0 : {T}[{R2},{N}]
  %c = cast %j : f32[{R2},{N}]
  %p = mul %c, %f : f32[{R2},{N}]
  %m = reduce max %p over 1 : f32[{R2},1]
}})";

/// Columns that go through both operands.
constexpr std::string_view columns = R"(graph @g on cuda:0 (%a: {T}[{A},{R}], %b: {T}[{B},{R}]) -> (%y, %m) {{
  %j = join %a, %b over 0 : {T}[{N},{R}]
  %c = cast %j : f32[{N},{R}]
  %m = reduce max %c over 0 : f32[1,{R}]
  %d = sub %c, %m : f32[{N},{R}]
  %y = cast %d : {T}[{N},{R}]
}})";

/// Columns of either operand.
constexpr std::string_view whole_columns = R"(graph @g on cuda:0 (%a: {T}[{R},{A}], %b: {T}[{R},{B}]) -> (%m) {{
  %j = join %a, %b over 1 : {T}[{R},{N}]
  %c = cast %j : f32[{R},{N}]
  %m = reduce max %c over 0 : f32[1,{N}]
}})";

TEST(JoinKernels, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  for (const JoinBody& body : join_bodies()) {
    for (const std::string_view dtype : {"f16", "f32", "b8", "i64"}) {
      for (const bool generic : {false, true}) {
        const std::string name = fmt::format("{} {}{}", body.name, dtype, generic ? " generic" : "");
        const std::string text = text_of(body, dtype, "cuda:0");
        trials.push_back(graph_trial(name, ir::parse(text), generic, trials.size()));
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

TEST(JoinKernels, give_several_vectors_a_thread) {
  std::vector<GraphTrial> trials;
  const auto add = [&](std::string_view text) { trials.push_back(graph_trial("many", ir::parse(text), false, 1)); };
  add("graph @g on cuda:0 (%a: f16[1024,4], %b: f16[1024,4]) -> (%y) { %y = join %a, %b over 1 : f16[1024,8] }");
  add("graph @g on cuda:0 (%a: b8[3,2736], %b: b8[3,16]) -> (%y) { %y = join %a, %b over 1 : b8[3,2752] }");
  add("graph @g on cuda:0 (%a: b8[3,2731], %b: b8[3,13]) -> (%y) { %y = join %a, %b over 1 : b8[3,2744] }");
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

struct Parts {
  int64_t rows;
  int64_t a;
  int64_t b;
};

TEST(JoinKernels, feed_rows) {
  std::vector<GraphTrial> trials;
  for (const Parts parts :
       {Parts{5, 3, 4}, Parts{64, 8, 8}, Parts{70, 40, 24}, Parts{3, 96, 32}, Parts{2, 1000, 24}, Parts{2, 4096, 13}}) {
    for (const std::string_view text : {softmax, whole_rows, columns, whole_columns}) {
      for (const std::string_view dtype : {"f16", "f32"}) {
        const std::string graph =
            fmt::format(fmt::runtime(text), fmt::arg("T", dtype), fmt::arg("R", parts.rows), fmt::arg("A", parts.a),
                        fmt::arg("B", parts.b), fmt::arg("N", parts.a + parts.b), fmt::arg("R2", 2 * parts.rows));
        const bool generic = trials.size() % 3 == 2;
        trials.push_back(
            graph_trial(fmt::format("{} + {} {}", parts.a, parts.b, dtype), ir::parse(graph), generic, trials.size()));
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

}  // namespace
}  // namespace sinter::test
