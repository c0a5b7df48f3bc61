#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/parse.h"
#include "tests/emulator/graph_trial.h"

/// Kernels that read elements at places which other tensors tell, emulated and compared with the interpreter. Memory
/// ends with the last element of a tensor, so the address sanitizer sees a place that is wrong.
namespace sinter::test {
namespace {

/// Rows of a table, one for each position.
constexpr std::string_view rows = R"(graph @g on cuda:0 (%p: {I}[{N},1], %t: {T}[{V},{D}]) -> (%y) {{
  %y = gather %t, %p over 0 : {T}[{N},{D}]
}})";

/// The same beside what is computed, with places that count from the end.
constexpr std::string_view counted =
    R"(graph @g on cuda:0 (%p: {I}[{N},1], %t: {T}[{V},{D}], %x: {T}[{N},{D}]) -> (%y) {{
  %m = sub %p, {V} : {I}[{N},1]
  %b = lt %m, 0 : b8[{N},1]
  %a = add %m, {V} : {I}[{N},1]
  %q = where %b, %a, %m : {I}[{N},1]
  %g = gather %t, %q over 0 : {T}[{N},{D}]
  %f = cast %g : f32[{N},{D}]
  %h = cast %x : f32[{N},{D}]
  %s = mul %f, %h : f32[{N},{D}]
  %y = cast %s : {T}[{N},{D}]
}})";

/// Two tables, of which the rows are summed up and normalised.
constexpr std::string_view normalised =
    R"(graph @g on cuda:0 (%p: {I}[{N},1], %t: {T}[{V},{D}], %u: {T}[{V},{D}]) -> (%y) {{
  %a = gather %t, %p over 0 : {T}[{N},{D}]
  %b = gather %u, %p over 0 : {T}[{N},{D}]
  %c = cast %a : f32[{N},{D}]
  %d = cast %b : f32[{N},{D}]
  %s = add %c, %d : f32[{N},{D}]
  %m = reduce max %s over 1 : f32[{N},1]
  %e = sub %s, %m : f32[{N},{D}]
  %x = exp %e : f32[{N},{D}]
  %z = reduce sum %x over 1 : f32[{N},1]
  %q = div %x, %z : f32[{N},{D}]
  %y = cast %q : {T}[{N},{D}]
}})";

/// A place for every element, along rows.
constexpr std::string_view elements = R"(graph @g on cuda:0 (%p: {I}[{N},{D}], %t: {T}[{N},{V}]) -> (%y) {{
  %y = gather %t, %p over 1 : {T}[{N},{D}]
}})";

/// The same in a kernel that reduces.
constexpr std::string_view sums = R"(graph @g on cuda:0 (%p: {I}[{N},{D}], %t: {T}[{N},{V}]) -> (%y, %z) {{
  %g = gather %t, %p over 1 : {T}[{N},{D}]
  %f = cast %g : f32[{N},{D}]
  %m = reduce max %f over 1 : f32[{N},1]
  %d = sub %f, %m : f32[{N},{D}]
  %y = cast %d : {T}[{N},{D}]
  %z = reduce sum %d over 1 : f32[{N},1]
}})";

/// Places that are gathered themselves, and columns of a table.
constexpr std::string_view nested = R"(graph @g on cuda:0 (%p: {I}[{N},1], %q: {I}[{V},1], %t: {T}[{D},{V}]) -> (%y) {{
  %c = gather %q, %p over 0 : {I}[{N},1]
  %v = view %c + 0 : {I}[1,{N}]
  %y = gather %t, %v over 1 : {T}[{D},{N}]
}})";

/// An image enlarged along two axes, as `expand_upsampling` writes it, channels last where {C} is the inner stride.
constexpr std::string_view sampled = R"(graph @g on cuda:0 (%x: {T}[2,{C},5,6]{{{S},{CS},{HS},{WS}}}) -> (%y) {{
  %a = position over 0 : i64[9,1]
  %b = cast %a : f32[9,1]
  %c = mul %b, 0.5 : f32[9,1]
  %p = cast %c : i64[9,1]
  %d = cast %p : f32[9,1]
  %w = sub %c, %d : f32[9,1]
  %e = position over 0 : i32[16]
  %q = quotient %e, 3 : i32[16]
  %g = gather %x, %p, %q over 2, 3 : {T}[2,{C},9,16]{{{RS},{CS2},{RHS},{RWS}}}
  %h = cast %g : f32[2,{C},9,16]{{{RS},{CS2},{RHS},{RWS}}}
  %z = mul %h, %w : f32[2,{C},9,16]{{{RS},{CS2},{RHS},{RWS}}}
  %y = cast %z : {T}[2,{C},9,16]{{{RS},{CS2},{RHS},{RWS}}}
}})";

/// Upper triangles of matrices, and sums of rows weighed by where they lie.
constexpr std::string_view triangles = R"(graph @g on cuda:0 (%x: {T}[{N},{D}]) -> (%y) {{
  %a = position over 0 : i64[{D}]
  %b = position over 0 : i64[{N},1]
  %c = sub %a, %b : i64[{N},{D}]
  %d = ge %c, 1 : b8[{N},{D}]
  %y = where %d, %x, 0.0 : {T}[{N},{D}]
}})";
constexpr std::string_view weighed_rows = R"(graph @g on cuda:0 (%x: {T}[{N},{D}]) -> (%s) {{
  %a = position over 0 : i64[{D}]
  %b = cast %a : f32[{D}]
  %c = position over 0 : i64[{N},1]
  %d = cast %c : f32[{N},1]
  %w = sub %b, %d : f32[{N},{D}]
  %f = cast %x : f32[{N},{D}]
  %m = mul %f, %w : f32[{N},{D}]
  %s = reduce sum %m over 1 : f32[{N},1]
}})";
/// A count that is seen as a matrix, behind a block of numbers.
constexpr std::string_view joined = R"(graph @g on cuda:0 (%x: {T}[{N},{D}]) -> (%y) {{
  %a = position over 0 : i64[{M}]
  %v = view %a + 0 : i64[{N},{D}]
  %c = cast %v : {T}[{N},{D}]
  %j = join %x, %c over 0 : {T}[{N2},{D}]
  %y = mul %j, 0.125 : {T}[{N2},{D}]
}})";

struct Sizes {
  int64_t positions;
  int64_t places;
  int64_t width;
};

/// Draws positions for every input of integers that holds some.
void draw_positions(GraphTrial& trial, int64_t places, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < trial.inputs.size(); ++i) {
    const ir::Type& type = trial.inputs[i].type;
    if (type.dtype != ir::DType::i64 && type.dtype != ir::DType::i32) continue;
    for (int64_t e = 0; e < type.numel(); ++e) {
      set_element(trial, i, e, static_cast<double>(random() % static_cast<uint64_t>(places)));
    }
  }
}

TEST(Gathers, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  for (const Sizes sizes : {Sizes{5, 7, 64}, Sizes{64, 100, 48}, Sizes{33, 3, 7}, Sizes{300, 11, 1},
                            Sizes{2, 1000, 1024}, Sizes{4000, 6, 128}}) {
    for (const std::string_view text : {rows, counted, normalised, elements, sums, nested}) {
      for (const std::string_view dtype : {"f16", "f32"}) {
        const std::string_view places = trials.size() % 2 == 0 ? "i64" : "i32";
        const std::string graph =
            fmt::format(fmt::runtime(text), fmt::arg("T", dtype), fmt::arg("I", places), fmt::arg("N", sizes.positions),
                        fmt::arg("V", sizes.places), fmt::arg("D", sizes.width));
        const bool generic = trials.size() % 3 == 2;
        const std::string name = fmt::format("{} of {} x {} {}", sizes.positions, sizes.places, sizes.width, dtype);
        trials.push_back(graph_trial(name, ir::parse(graph), generic, trials.size()));
        trials.back().slack = 4;
        draw_positions(trials.back(), sizes.places, trials.size());
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

TEST(Positions, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  for (const Sizes sizes : {Sizes{5, 0, 64}, Sizes{64, 0, 48}, Sizes{33, 0, 7}, Sizes{300, 0, 1}, Sizes{2, 0, 1024}}) {
    for (const std::string_view text : {triangles, weighed_rows, joined}) {
      for (const bool generic : {false, true}) {
        const std::string graph = fmt::format(fmt::runtime(text), fmt::arg("T", "f32"), fmt::arg("N", sizes.positions),
                                              fmt::arg("D", sizes.width), fmt::arg("M", sizes.positions * sizes.width),
                                              fmt::arg("N2", 2 * sizes.positions));
        trials.push_back(graph_trial("positions", ir::parse(graph), generic, trials.size()));
        trials.back().slack = static_cast<double>(sizes.width) * 64;
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

TEST(Positions, tell_gathers_where_to_read) {
  std::vector<GraphTrial> trials;
  for (const std::string_view dtype : {"f16", "f32"}) {
    for (const int64_t channels : {int64_t{3}, int64_t{32}}) {
      for (const bool last : {false, true}) {
        const int64_t step = last ? channels : 1;
        const std::string graph =
            fmt::format(fmt::runtime(sampled), fmt::arg("T", dtype), fmt::arg("C", channels),
                        fmt::arg("S", 30 * channels), fmt::arg("CS", last ? 1 : 30), fmt::arg("HS", 6 * step),
                        fmt::arg("WS", step), fmt::arg("RS", 144 * channels), fmt::arg("CS2", last ? 1 : 144),
                        fmt::arg("RHS", 16 * step), fmt::arg("RWS", step));
        for (const bool generic : {false, true}) {
          trials.push_back(graph_trial("sampled", ir::parse(graph), generic, trials.size()));
        }
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

TEST(Gathers, give_several_vectors_a_thread) {
  std::vector<GraphTrial> trials;
  for (const std::string_view dtype : {"b8", "i8", "f16"}) {
    const std::string graph = fmt::format(fmt::runtime(rows), fmt::arg("T", dtype), fmt::arg("I", "i64"),
                                          fmt::arg("N", 20000), fmt::arg("V", 50), fmt::arg("D", 12));
    trials.push_back(graph_trial("many", ir::parse(graph), false, 1));
    draw_positions(trials.back(), 50, 3);
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

/// Rows of a multiple of 16 bytes are read whole: in kernels of points, and of rows.
TEST(Gathers, read_vectors_where_places_are_those_of_a_row) {
  for (const std::string_view text : {rows, normalised}) {
    const std::string graph = fmt::format(fmt::runtime(text), fmt::arg("T", "f16"), fmt::arg("I", "i64"),
                                          fmt::arg("N", 4096), fmt::arg("V", 1000), fmt::arg("D", 512));
    const KernelSource source = graph_trial("vectors", ir::parse(graph), false, 1).source;
    EXPECT_NE(source.text.find("load<pack<f16, 8, 16>>(in1 + ("), std::string::npos) << source.text;
    EXPECT_EQ(source.params[1].alignment, 16);
  }
}

TEST(GathersDeathTest, end_the_work_where_a_place_lies_outside) {
  const std::string graph = fmt::format(fmt::runtime(rows), fmt::arg("T", "f32"), fmt::arg("I", "i64"),
                                        fmt::arg("N", 4), fmt::arg("V", 3), fmt::arg("D", 8));
  for (const double wrong : {3.0, -1.0}) {
    std::vector<GraphTrial> trials{graph_trial("outside", ir::parse(graph), false, 1)};
    draw_positions(trials[0], 3, 1);
    set_element(trials[0], 0, 2, wrong);
    EXPECT_DEATH((void)differences(trials), "");
  }
}

}  // namespace
}  // namespace sinter::test
