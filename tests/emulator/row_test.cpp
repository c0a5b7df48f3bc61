#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/ir/parse.h"
#include "tests/emulator/graph_trial.h"

/// Kernels whose threads share rows, emulated and compared with the interpreter.
namespace sinter::test {
namespace {

using ir::Graph;

/// A body with {R} rows of {N} elements of dtype {T}, computed in {C}.
struct RowBody {
  std::string name;
  std::string text;
};

const std::vector<RowBody>& bodies() {
  static const std::vector<RowBody> all = {
      {"softmax", R"(graph @softmax on cuda:0 (%x: {T}[{R},{N}]) -> (%y) {{
        %c = cast %x : {C}[{R},{N}]
        %m = reduce max %c over 1 : {C}[{R},1]
        %d = sub %c, %m : {C}[{R},{N}]
        %e = exp %d : {C}[{R},{N}]
        %s = reduce sum %e over 1 : {C}[{R},1]
        %q = div %e, %s : {C}[{R},{N}]
        %y = cast %q : {T}[{R},{N}]
      }})"},
      {"norm_of_a_sum_that_is_stored", R"(graph @norm on cuda:0 (%x: {T}[{R},{N}], %r: {T}[{R},{N}], %w: {T}[{N}]) -> (%s, %y, %v) {{
        %xc = cast %x : {C}[{R},{N}]
        %rc = cast %r : {C}[{R},{N}]
        %sc = add %xc, %rc : {C}[{R},{N}]
        %s = cast %sc : {T}[{R},{N}]
        %c = cast %s : {C}[{R},{N}]
        %t = reduce sum %c over 1 : {C}[{R},1]
        %m = mul %t, 0.125 : {C}[{R},1]
        %d = sub %c, %m : {C}[{R},{N}]
        %d2 = mul %d, %d : {C}[{R},{N}]
        %v = reduce sum %d2 over 1 : {C}[{R},1]
        %v1 = add %v, 1.0 : {C}[{R},1]
        %q = sqrt %v1 : {C}[{R},1]
        %n = div %d, %q : {C}[{R},{N}]
        %wc = cast %w : {C}[{N}]
        %o = mul %n, %wc : {C}[{R},{N}]
        %y = cast %o : {T}[{R},{N}]
      }})"},
      {"least_of_every_second_element", R"(graph @least on cuda:0 (%x: {T}[{R},{N}]{{{N2},2}}) -> (%y) {{
        %c = cast %x : {C}[{R},{N}]
        %y = reduce min %c over 1 : {C}[{R},1]
      }})"},
      {"softmax_across_rows", R"(graph @softmax on cuda:0 (%x: {T}[{N},{R}]) -> (%y, %m) {{
        %c = cast %x : {C}[{N},{R}]
        %m = reduce max %c over 0 : {C}[1,{R}]
        %d = sub %c, %m : {C}[{N},{R}]
        %e = exp %d : {C}[{N},{R}]
        %s = reduce sum %e over 0 : {C}[1,{R}]
        %q = div %e, %s : {C}[{N},{R}]
        %y = cast %q : {T}[{N},{R}]
      }})"},
      {"norm_across_rows_and_sums_side_by_side", R"(graph @norm on cuda:0 (%x: {T}[{N},{R}], %g: {T}[{N},{R}]) -> (%y, %a, %b) {{
        %c = cast %x : {C}[{N},{R}]
        %t = reduce sum %c over 0 : {C}[1,{R}]
        %m = ratio %t, {N}.0 : {C}[1,{R}]
        %d = sub %m, %c : {C}[{N},{R}]
        %d2 = mul %d, %d : {C}[{N},{R}]
        %q = reduce sum %d2 over 0 : {C}[1,{R}]
        %v = ratio %q, {N}.0 : {C}[1,{R}]
        %v1 = add %v, 1.0 : {C}[1,{R}]
        %i = rsqrt %v1 : {C}[1,{R}]
        %e = sub %c, %m : {C}[{N},{R}]
        %n = mul %e, %i : {C}[{N},{R}]
        %y = cast %n : {T}[{N},{R}]
        %n2 = mul %n, %n : {C}[{N},{R}]
        %a = reduce sum %n2 over 0 : {C}[1,{R}]
        %h = cast %g : {C}[{N},{R}]
        %h2 = mul %h, %h : {C}[{N},{R}]
        %b = reduce sum %h2 over 0 : {C}[1,{R}]
      }})"},
  };
  return all;
}

Graph body_of(const RowBody& body, int64_t rows, int64_t length, std::string_view dtype, std::string_view computed) {
  return ir::parse(fmt::format(fmt::runtime(body.text), fmt::arg("R", rows), fmt::arg("N", length),
                               fmt::arg("N2", 2 * length), fmt::arg("T", dtype), fmt::arg("C", computed)));
}

struct RowSizes {
  int64_t rows;
  int64_t length;
};

/// Parts of a warp, whole warps, blocks with full and partial warps, rows that are read again, tails of every kind.
constexpr RowSizes sizes[] = {{3, 2},   {5, 7},    {64, 8},   {257, 16}, {9, 49},   {40, 64},
                              {3, 100}, {130, 96}, {4, 1000}, {2, 768},  {2, 4104}, {1, 8195}};

TEST(RowKernels, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  uint64_t seed = 0;
  const auto add = [&](const RowBody& body, RowSizes size, std::string_view dtype, std::string_view computed) {
    const bool generic = ++seed % 3 == 0;
    trials.push_back(
        graph_trial(fmt::format("{} {}[{},{}]{}", body.name, dtype, size.rows, size.length, generic ? " generic" : ""),
                    body_of(body, size.rows, size.length, dtype, computed), generic, seed));
  };
  for (const RowBody& body : bodies()) {
    for (const RowSizes size : sizes) {
      add(body, size, "f16", "f32");
      add(body, size, "f32", "f32");
    }
    add(body, {6, 40}, "bf16", "f32");
    add(body, {6, 40}, "f64", "f64");
    add(body, {6, 40}, "f32", "f32");
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

}  // namespace
}  // namespace sinter::test
