#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/parse.h"
#include "tests/emulator/graph_trial.h"

/// Kernels of attention, emulated and compared with the interpreter.
namespace sinter::test {
namespace {

struct Sizes {
  int64_t queries, keys, vector;
};
constexpr Sizes sizes[] = {{49, 49, 32}, {16, 64, 16}, {1, 7, 64},  {70, 100, 48}, {3, 128, 128}, {64, 16, 96},
                           {16, 9, 6},   {20, 33, 36}, {5, 70, 24}, {17, 8, 10},   {3, 5, 2}};

TEST(AttentionKernels, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  for (const Sizes& size : sizes) {
    for (const std::string_view dtype : {"f16", "bf16"}) {
      for (const bool biased : {false, true}) {
        const std::string text = fmt::format(
            R"(graph @g on cuda:0 (%q: {0}[1,2,{1},{3}], %k: {0}[1,2,{2},{3}], %v: {0}[1,2,{2},{3}], %b: {0}[1,2,{1},{2}]) -> (%y) {{
  %y = attention %q, %k, %v{4} scale 0.125 : {0}[1,2,{1},{3}]
}})",
            dtype, size.queries, size.keys, size.vector, biased ? ", %b" : "");
        trials.push_back(graph_trial(
            fmt::format("{}x{}x{} {}{}", size.queries, size.keys, size.vector, dtype, biased ? " biased" : ""),
            ir::parse(text), false, trials.size()));
        trials.back().slack = 2;  // weights are rounded, too
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

/// Queries, keys and values of one projection, windows of images, a bias by head and a mask by window.
TEST(AttentionKernels, read_operands_where_they_lie) {
  std::vector<GraphTrial> trials;
  trials.push_back(graph_trial("windows",
                               ir::parse(R"(graph @g on cuda:0 (%x: f16[6,49,3,2,32], %b: f16[1,3,2,49,56]) -> (%y) {
  %q = view %x + 0 : f16[2,3,2,49,32]{28224,9408,32,192,1}
  %k = view %x + 64 : f16[2,3,2,49,32]{28224,9408,32,192,1}
  %v = view %x + 128 : f16[2,3,2,49,32]{28224,9408,32,192,1}
  %m = view %b + 0 : f16[1,3,2,49,49]{16464,5488,2744,56,1}
  %y = attention %q, %k, %v, %m scale 0.25 : f16[2,3,2,49,32]{9408,3136,32,64,1}
})"),
                               false, 1));
  trials.push_back(graph_trial("a row of bias for all",
                               ir::parse(R"(graph @g on cuda:0 (%x: f16[5,20,16], %b: f16[5,1,20]) -> (%y) {
  %y = attention %x, %x, %x, %b scale 1.0 : f16[5,20,16]
})"),
                               false, 2));
  trials.push_back(graph_trial("causal", ir::parse(R"(graph @g on cuda:0 (%x: f16[2,40,32]) -> (%y) {
  %y = attention %x, %x, %x scale 0.5 causal : f16[2,40,32]
})"),
                               false, 4));
  for (GraphTrial& trial : trials) trial.slack = 2;
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

TEST(AttentionKernels, of_rows_that_leave_nothing_give_nan_or_zeros) {
  std::vector<GraphTrial> trials;
  for (const std::string_view zeros : {"", " zeros"}) {
    trials.push_back(
        graph_trial(fmt::format("nothing left{}", zeros),
                    ir::parse(fmt::format(R"(graph @g on cuda:0 (%x: f16[1,18,16], %b: f16[1,18,18]) -> (%y) {{
  %y = attention %x, %x, %x, %b scale 1.0{} : f16[1,18,16]
}})",
                                          zeros)),
                    false, 3));
    for (int64_t key = 0; key < 18; ++key) {
      set_element(trials.back(), 1, 5 * 18 + key, -std::numeric_limits<double>::infinity());
      if (key != 3) set_element(trials.back(), 1, 17 * 18 + key, -std::numeric_limits<double>::infinity());
    }
    trials.back().slack = 2;
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

}  // namespace
}  // namespace sinter::test
