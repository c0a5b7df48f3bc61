#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/codegen/cuda.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/passes/pipeline.h"
#include "tests/emulator/graph_trial.h"

/// Pools and depthwise convolutions as kernels, emulated and compared with the interpreter. The image's memory ends
/// with its last element, so the address sanitizer sees what a window reads behind it.
namespace sinter::test {
namespace {

/// Sizes of an image and of the windows along both of its axes.
struct Windows {
  int64_t images, channels, height, width;
  int64_t taps_high, taps_wide;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;

  [[nodiscard]] int64_t outputs(int64_t size, int64_t taps) const {
    return (size + 2 * padding - dilation * (taps - 1) - 1) / stride + 1;
  }
};

constexpr Windows tables[] = {
    {2, 16, 12, 12, 3, 3, 1, 1},    // tiles that fill the rows
    {1, 24, 9, 11, 3, 3, 2, 1},     // odd sizes
    {2, 8, 7, 7, 7, 7, 1, 3},       // windows larger than the image
    {1, 12, 10, 23, 5, 5, 1, 2},    // channels that fill half a vector
    {1, 5, 8, 13, 3, 3, 1, 1},      // channels that fill none
    {1, 8, 14, 15, 3, 3, 1, 2, 2},  // dilation
    {2, 8, 17, 19, 3, 2, 2, 1, 3},  // steps and taps of different strides
    {1, 8, 13, 13, 2, 2, 1, 0},     // no padding
    {3, 16, 1, 9, 1, 3, 1, 0},      // one row
    {1, 1, 9, 9, 3, 3, 1, 1},       // one channel
    {2, 8, 5, 40, 1, 31, 1, 15},    // one long axis
    {1, 136, 5, 6, 3, 3, 1, 1},     // lanes in several lines
    {2, 16, 64, 64, 2, 2, 2, 0},    // windows side by side
    {1, 8, 9, 10, 3, 3, 3, 1},      // the same, padded
};

std::string image(std::string_view dtype, int64_t n, int64_t c, int64_t h, int64_t w, bool last) {
  const std::string strides = last ? fmt::format("{{{},1,{},{}}}", h * w * c, w * c, c) : "";
  return fmt::format("{}[{},{},{},{}]{}", dtype, n, c, h, w, strides);
}

std::string pair(int64_t a, int64_t b) { return fmt::format("[{}, {}]", a, b); }

/// A call of which `rest` follows, on an image `%x` that `before` may compute from `%i`.
std::string graph_of(const Windows& w, std::string_view call, std::string_view dtype, bool last) {
  const int64_t high = w.outputs(w.height, w.taps_high);
  const int64_t wide = w.outputs(w.width, w.taps_wide);
  const std::string result = image(dtype, w.images, w.channels, high, wide, last);
  const std::string numbers = fmt::format("{}, {}", pair(w.stride, w.stride), pair(w.padding, w.padding));
  const std::string dilation = pair(w.dilation, w.dilation);
  const std::string taps = pair(w.taps_high, w.taps_wide);
  std::string text;
  if (call == "depthwise") {
    text = fmt::format("%y = call aten.convolution(%x, %w, %b, {}, {}, false, [0, 0], {}) : {}", numbers, dilation,
                       w.channels, result);
  } else if (call == "max") {
    text = fmt::format("%y, %i = call aten.max_pool2d_with_indices(%x, {}, {}, {}, false) : {}, {}", taps, numbers,
                       dilation, result, image("i64", w.images, w.channels, high, wide, last));
  } else {
    text = fmt::format("%y = call aten.avg_pool2d(%x, {}, {}, false, true, none) : {}", taps, numbers, result);
  }
  const std::string wide_result = image("f32", w.images, w.channels, high, wide, last);
  return fmt::format(
      "graph @g on cuda:0 (%x: {}, %w: {}[{},1,{},{}], %b: {}[{}], %r: {}) -> (%z) {{\n{}\n%c = cast %y : {}\n"
      "%d = cast %r : {}\n%s = add %c, %d : {}\n%m = maximum %s, -1.0 : {}\n%z = cast %m : {} }}",
      image(dtype, w.images, w.channels, w.height, w.width, last), dtype, w.channels, w.taps_high, w.taps_wide, dtype,
      w.channels, result, text, wide_result, wide_result, wide_result, wide_result, result);
}

/// What the passes make of a graph.
ir::Graph compiled(const std::string& text) {
  ir::Graph graph = ir::parse(text);
  passes::PassContext context;
  context.device = test_device();
  for (const auto& row : passes::pipeline()) {
    if (row.name != "functionalize" && row.name != "decompose") row.run(graph, context);
  }
  return graph;
}

bool is_of_windows(const GraphTrial& trial) { return trial.source.comment.find("windows of") != std::string::npos; }

/// The trials of a graph: one kernel for the windows and what follows them, perhaps one that lays weights out.
void add_trials(const std::string& name, const std::string& text, bool generic, std::vector<GraphTrial>& trials) {
  const std::vector<ir::Graph> bodies = bodies_of(compiled(text));
  EXPECT_LE(bodies.size(), 2u) << text;
  for (const ir::Graph& body : bodies) {
    trials.push_back(graph_trial(name, body, generic, trials.size()));
    trials.back().slack = 8;  // products of up to 16
  }
}

std::string name_of(const Windows& w, std::string_view call, std::string_view dtype, bool last) {
  return fmt::format("{} {}x{} over {} stride {} padding {} dilation {} {}", call, w.taps_high, w.taps_wide,
                     image(dtype, w.images, w.channels, w.height, w.width, last), w.stride, w.padding, w.dilation,
                     dtype);
}

class WindowCalls : public testing::TestWithParam<std::string_view> {};

TEST_P(WindowCalls, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  for (const Windows& windows : tables) {
    for (const std::string_view dtype : {"f16", "bf16", "f32"}) {
      for (const bool last : {true, false}) {
        if (windows.channels == 1 && GetParam() == "depthwise") continue;
        if (dtype == "bf16" && windows.padding != 1) continue;
        const std::string name = name_of(windows, GetParam(), dtype, last);
        add_trials(name, graph_of(windows, GetParam(), dtype, last), false, trials);
        const bool beside = windows.stride >= windows.taps_wide && windows.stride >= windows.taps_high;
        EXPECT_TRUE(is_of_windows(trials.back()) || (beside && windows.height < 64)) << name;
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

TEST_P(WindowCalls, of_sizes_as_parameters_go_through_rows) {
  std::vector<GraphTrial> trials;
  const std::string_view call = GetParam();
  add_trials("generic", graph_of(tables[1], call, "f16", true), true, trials);
  EXPECT_FALSE(is_of_windows(trials.back()));
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

INSTANTIATE_TEST_SUITE_P(Calls, WindowCalls, testing::Values("depthwise", "max", "mean"),
                         [](const auto& call) { return std::string(call.param); });

TEST(MaxPools, give_nan_where_a_window_has_one_and_minus_infinity_where_it_has_nothing_else) {
  std::vector<GraphTrial> trials;
  for (const std::string_view dtype : {"f16", "f32"}) {
    add_trials("specials", graph_of(tables[0], "max", dtype, true), false, trials);
    GraphTrial& trial = trials.back();
    const auto size = static_cast<int64_t>(trial.inputs[0].storage->size());
    for (int64_t e = 0; e < size; ++e) {
      if (e > size / 2) set_element(trial, 0, e, -std::numeric_limits<double>::infinity());
      if (e % 97 == 5) set_element(trial, 0, e, std::numeric_limits<double>::quiet_NaN());
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

TEST(MaxPools, and_their_gradients_between_those_of_relu_and_bias) {
  std::vector<GraphTrial> trials;
  for (const auto& [height, width] : {std::pair{8, 12}, std::pair{9, 15}}) {
    for (const bool last : {true, false}) {
      const auto of = [&](std::string_view dtype, int64_t h, int64_t w) { return image(dtype, 2, 16, h, w, last); };
      const int64_t h = height / 2, w = width / 3;
      const std::string large = of("f16", height, width), small = of("f16", h, w);
      const std::string text = fmt::format(
          R"(graph @g on cuda:0 (%x: {0}, %d: {1}) -> (%y, %dx, %db) {{
            %y, %i = call aten.max_pool2d_with_indices(%x, [2, 3], [], [0, 0], [1, 1], false) : {1}, {2}
            %p = call aten.max_pool2d_with_indices_backward(%d, %x, [2, 3], [], [0, 0], [1, 1], false, %i) : {0}
            %t = gt %x, 0.0 : {3}
            %dx = where %t, %p, 0.0 : {0}
            %c = cast %dx : {4}
            %s = reduce sum %c over 0, 2, 3 : f32[1,16,1,1]
            %v = view %s + 0 : f32[16]
            %db = cast %v : f16[16]
          }})",
          large, small, of("i64", h, w), of("b8", height, width), of("f32", height, width));
      const std::vector<ir::Graph> bodies = bodies_of(compiled(text));
      EXPECT_GE(bodies.size(), 2u) << text;
      for (const ir::Graph& body : bodies) {
        trials.push_back(graph_trial(large, body, /*generic=*/false, trials.size()));
        trials.back().slack = 8;
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

/// Of windows that overlap: each has chosen its middle element, or the first one in the image.
TEST(MaxPools, whose_windows_overlap_have_gradients_from_indices) {
  constexpr int64_t channels = 16, size = 9, outputs = 5;
  const std::string large = image("f16", 2, channels, size, size, true);
  const std::string small = image("f16", 2, channels, outputs, outputs, true);
  const ir::Graph graph = compiled(fmt::format(
      R"(graph @g on cuda:0 (%x: {0}, %d: {1}) -> (%y, %dx) {{
        %y, %i = call aten.max_pool2d_with_indices(%x, [3, 3], [2, 2], [1, 1], [1, 1], false) : {1}, {2}
        %p = call aten.max_pool2d_with_indices_backward(%d, %x, [3, 3], [2, 2], [1, 1], [1, 1], false, %i) : {0}
        %t = gt %x, 0.0 : {3}
        %dx = where %t, %p, 0.0 : {0}
      }})",
      large, small, image("i64", 2, channels, outputs, outputs, true), image("b8", 2, channels, size, size, true)));
  std::vector<GraphTrial> trials;
  for (const ir::NodeId id : graph.order()) {
    const auto* fused = graph.node(id).as<ir::Fused>();
    if (fused == nullptr) continue;
    trials.push_back(graph_trial("overlap", *fused->body, /*generic=*/false, trials.size()));
    for (size_t input = 0; input < trials.back().inputs.size(); ++input) {
      if (trials.back().inputs[input].type.dtype != ir::DType::i64) continue;
      for (int64_t e = 0; e < 2 * outputs * outputs * channels; ++e) {
        const int64_t row = e / channels / outputs % outputs, column = e / channels % outputs;
        const int64_t tap = e % 2;
        const int64_t chosen = std::max<int64_t>(0, row * 2 - tap) * size + std::max<int64_t>(0, column * 2 - tap);
        set_element(trials.back(), input, e, static_cast<double>(chosen));
      }
    }
  }
  EXPECT_EQ(trials.size(), 2u) << ir::print(graph);  // numbers of elements, once, and the gradient
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

/// Kernels that no call alone stands for.
constexpr std::string_view bodies[] = {
    // The image is computed where it is read; two pools share its elements; one is rounded, one is not.
    R"(graph @g on cuda:0 (%x: f16[2,16,10,13]{2080,1,208,16}, %s: f32[16,1,1]) -> (%y, %z) {
      %c = cast %x : f32[2,16,10,13]{2080,1,208,16}
      %m = mul %c, %s : f32[2,16,10,13]{2080,1,208,16}
      %v = view %m + 0 : f32[2,16,8,11,3,3]{2080,1,208,16,208,16}
      %a = reduce max %v over 4, 5 : f32[2,16,8,11,1,1]{1408,1,176,16,1,1}
      %b = reduce sum %v over 4, 5 : f32[2,16,8,11,1,1]{1408,1,176,16,1,1}
      %u = view %a + 0 : f32[2,16,8,11]{1408,1,176,16}
      %w = view %b + 0 : f32[2,16,8,11]{1408,1,176,16}
      %z = add %w, %u : f32[2,16,8,11]{1408,1,176,16}
      %y = cast %u : f16[2,16,8,11]{1408,1,176,16}
    })",
    // Channels of two images.
    R"(graph @g on cuda:0 (%p: f16[1,8,9,9]{648,1,72,8}, %q: f16[1,24,9,9]{1944,1,216,24}) -> (%y) {
      %x = join %p, %q over 1 : f16[1,32,9,9]{2592,1,288,32}
      %v = view %x + 0 : f16[1,32,7,7,3,3]{2592,1,288,32,288,32}
      %c = cast %v : f32[1,32,7,7,3,3]{14112,9,2016,288,3,1}
      %a = reduce max %c over 4, 5 : f32[1,32,7,7,1,1]{1568,1,224,32,1,1}
      %u = view %a + 0 : f32[1,32,7,7]{1568,1,224,32}
      %y = cast %u : f16[1,32,7,7]{1568,1,224,32}
    })",
    // What a window joins is needed by itself too, and lies elsewhere; the residual is row-major.
    R"(graph @g on cuda:0 (%x: f32[1,8,6,9]{432,1,72,8}, %r: f32[1,8,6,9]) -> (%m, %y) {
      %m = maximum %x, 0.5 : f32[1,8,6,9]{432,1,72,8}
      %o = cast 0.0 : f32[1,8,6,1]{48,1,8,8}
      %j = join %o, %m, %o over 3 : f32[1,8,6,11]{528,1,88,8}
      %v = view %j + 0 : f32[1,8,6,9,3]{528,1,88,8,8}
      %a = reduce sum %v over 4 : f32[1,8,6,9,1]{432,1,72,8,1}
      %u = view %a + 0 : f32[1,8,6,9]{432,1,72,8}
      %y = add %u, %r : f32[1,8,6,9]{432,1,72,8}
    })",
    // Integers, and a factor for each tap that channels share.
    R"(graph @g on cuda:0 (%x: i64[3,20,8], %w: i64[4]) -> (%y) {
      %v = view %x + 0 : i64[3,17,8,4]{160,8,1,8}
      %p = mul %v, %w : i64[3,17,8,4]{544,32,4,1}
      %a = reduce sum %p over 3 : i64[3,17,8,1]
      %y = view %a + 0 : i64[3,17,8]
      %y.1 = add %y, 0 : i64[3,17,8]
    })",
    // What follows sees the pixels as tokens, which lie in memory as the image does.
    R"(graph @g on cuda:0 (%x: f16[2,16,6,7]{672,1,112,16}) -> (%y) {
      %v = view %x + 0 : f16[2,16,4,5,3,3]{672,1,112,16,112,16}
      %c = cast %v : f32[2,16,4,5,3,3]{2880,9,720,144,3,1}
      %a = reduce sum %c over 4, 5 : f32[2,16,4,5,1,1]{320,1,80,16,1,1}
      %t = view %a + 0 : f32[2,20,16]
      %m = mul %t, 0.5 : f32[2,20,16]
      %y = cast %m : f16[2,20,16]
    })",
    // What follows sees the pixels in blocks, one after the other.
    R"(graph @g on cuda:0 (%x: f16[2,16,13,17]{3536,1,272,16}) -> (%y) {
      %v = view %x + 0 : f16[2,16,6,8,3,3]{3536,1,544,32,272,16}
      %c = cast %v : f32[2,16,6,8,3,3]{6912,9,1152,144,3,1}
      %a = reduce max %c over 4, 5 : f32[2,16,6,8,1,1]{768,1,128,16,1,1}
      %u = view %a + 0 : f32[2,16,6,8]{768,1,128,16}
      %h = cast %u : f16[2,16,6,8]{768,1,128,16}
      %b = view %h + 0 : f16[2,2,2,3,4,16]{768,384,64,128,16,1}
      %t = cast %b : f16[2,2,2,3,4,16]
      %w = view %t + 0 : f16[2,4,12,16]
      %m = neg %w : f16[2,4,12,16]
      %y = cast %m : f16[2,4,12,16]
    })",
    // Row-major as captured, channels-last where it is read and written.
    R"(graph @g on cuda:0 (%x: f16[2,16,6,7]{672,1,112,16}) -> (%y) {
      %i = cast %x : f32[2,16,6,7]
      %v = view %i + 0 : f32[2,16,4,5,3,3]{672,42,7,1,7,1}
      %a = reduce sum %v over 4, 5 : f32[2,16,4,5,1,1]
      %u = view %a + 0 : f32[2,16,4,5]
      %y = cast %u : f16[2,16,4,5]{320,1,80,16}
    })",
};

TEST(WindowKernels, compute_what_stands_before_and_behind_them) {
  std::vector<GraphTrial> trials;
  for (const std::string_view body : bodies) {
    for (const bool generic : {false, true}) {
      trials.push_back(graph_trial("body", ir::parse(body), generic, trials.size()));
      trials.back().slack = 8;
      EXPECT_NE(is_of_windows(trials.back()), generic) << body;
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(WindowText, reads_vectors_of_channels_and_rounds_once) {
  std::vector<GraphTrial> trials;
  add_trials("text", graph_of({2, 64, 24, 24, 3, 3, 1, 1}, "depthwise", "f16", true), false, trials);
  const std::string& text = trials.back().source.text;
  EXPECT_TRUE(contains(text, "load<pack<f16, 8, 16>>")) << text;
  EXPECT_TRUE(contains(text, "= fma(")) << text;
  EXPECT_FALSE(contains(text, "long long")) << text;
}

TEST(WindowText, of_more_than_31_bits_of_elements_has_wide_indices) {
  const ir::Graph graph = ir::parse(R"(graph @g on cuda:0 (%x: f16[32,130,1048576]) -> (%y) {
    %v = view %x + 0 : f16[32,128,1048576,3]{136314880,1048576,1,1048576}
    %c = cast %v : f32[32,128,1048576,3]
    %a = reduce max %c over 3 : f32[32,128,1048576,1]
    %u = view %a + 0 : f32[32,128,1048576]
    %y = cast %u : f16[32,128,1048576]
  })");
  const KernelSource source = codegen::generate_cuda(kernel::lower(graph, "fused_max"), test_device());
  EXPECT_TRUE(contains(source.comment, "windows of")) << source.comment;
  EXPECT_TRUE(contains(source.text, "(long long)(")) << source.text;
}

}  // namespace
}  // namespace sinter::test
