#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/graph_trial.h"

/// The kernels that the passes make of batch norm in training and its gradient, and of group norm, emulated and
/// compared with the interpreter.
namespace sinter::test {
namespace {

struct Image {
  int64_t images, channels, height, width;
  bool channels_last;
};

/// Enough elements for sums in two parts; odd sizes; both layouts.
constexpr Image shapes[] = {
    {16, 40, 32, 16, false}, {16, 40, 32, 16, true}, {3, 70, 7, 5, true}, {5, 33, 3, 3, false}, {70, 48, 1, 1, false}};

std::string step_of(const Image& image, std::string_view dtype) {
  const int64_t pixels = image.height * image.width;
  const std::string strides =
      fmt::format("{{{},1,{},{}}}", image.channels * pixels, image.channels * image.width, image.channels);
  const std::string type = fmt::format("{}[{},{},{},{}]{}", dtype, image.images, image.channels, image.height,
                                       image.width, image.channels_last ? strides : "");
  return fmt::format(
      R"(graph @g on cuda:0 (%x: {0}, %gy: {0}, %w: f32[{1}], %b: f32[{1}], %m: f32[{1}], %v: f32[{1}]) -> (%r, %gx, %gw, %gb) {{
  %n, %sm, %si, %k = call aten.cudnn_batch_norm(%x, %w, %b, %m, %v, true, 0.1, 1e-05) mutates(3, 4) : {0}, f32[{1}], f32[{1}], u8[0]
  %r = call aten.relu_(%n) mutates(0) functional aten.relu : {0} alias %n + 0
  %g = call aten.threshold_backward(%gy, %r, 0) : {0}
  %gx, %gw, %gb = call aten.cudnn_batch_norm_backward(%x, %g, %w, %m, %v, %sm, %si, 1e-05, %k) : {0}, f32[{1}], f32[{1}]
}})",
      type, image.channels);
}

TEST(TrainingNormKernels, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  for (const Image& image : shapes) {
    for (const std::string_view dtype : {"f16", "f32"}) {
      const bool large = image.height == 32;  // each layout once
      if (large && (dtype == "f16") != image.channels_last) continue;
      const std::string name = fmt::format("{} channels {}", image.channels, dtype);
      for (const ir::Graph& body : bodies_of(compiled(step_of(image, dtype)))) {
        trials.push_back(graph_trial(name, body, false, trials.size()));
        trials.back().slack = 32;  // sums of products of up to 16 that cancel
      }
    }
  }
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

/// Ten channels of a group, of a line of 80: enough elements for sums in two parts.
TEST(GroupNormKernels, of_short_runs_give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  for (const ir::Graph& body : bodies_of(compiled(
           R"(graph @g on cuda:0 (%x: f16[1,80,64,64]{327680,1,5120,80}, %w: f16[80], %b: f16[80]) -> (%s) {
  %c = call aten.contiguous(%x, 0) : f16[1,80,64,64]
  %n, %m, %r = call aten.native_group_norm(%c, %w, %b, 1, 80, 4096, 8, 1e-05) : f16[1,80,64,64], f16[1,8], f16[1,8]
  %s = call aten.silu(%n) : f16[1,80,64,64]
})"))) {
    trials.push_back(graph_trial("groups of ten", body, false, trials.size()));
    trials.back().slack = 4;  // inputs of a kernel are drawn: variances are what no variance is
  }
  EXPECT_EQ(trials.size(), 5U);
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

/// Loads of a pass behind the first one, which groups of rows do at once; sums of columns of which the last block has
/// some that are none.
TEST(RowGroupKernels, give_what_the_interpreter_gives) {
  std::vector<GraphTrial> trials;
  for (
      const ir::Graph& body : bodies_of(compiled(
          R"(graph @g on cuda:0 (%x: f32[2816,512], %g: f32[2816,512], %w: f32[512], %z: f16[64,9604]) -> (%dx, %dw, %dz) {
  %m = call aten.amax(%x, [1], true) : f32[2816,1]
  %c = call aten.sub.Tensor(%x, %m, 1) : f32[2816,512]
  %e = call aten.exp(%c) : f32[2816,512]
  %s = call aten.sum.dim_IntList(%e, [1], true, none) : f32[2816,1]
  %p = call aten.div.Tensor(%e, %s) : f32[2816,512]
  %t = call aten.mul.Tensor(%g, %w) : f32[2816,512]
  %tp = call aten.mul.Tensor(%t, %p) : f32[2816,512]
  %d = call aten.sum.dim_IntList(%tp, [1], true, none) : f32[2816,1]
  %dp = call aten.sub.Tensor(%t, %d, 1) : f32[2816,512]
  %dx = call aten.mul.Tensor(%dp, %p) : f32[2816,512]
  %gp = call aten.mul.Tensor(%g, %p) : f32[2816,512]
  %dw = call aten.sum.dim_IntList(%gp, [0], true, none) : f32[1,512]
  %dz = call aten.sum.dim_IntList(%z, [0], true, none) : f16[1,9604]
})"))) {
    trials.push_back(graph_trial("rows in groups", body, false, trials.size()));
    trials.back().slack = 64;  // sums that cancel
  }
  ASSERT_GE(trials.size(), 3);
  for (const std::string& problem : differences(trials)) ADD_FAILURE() << problem;
}

}  // namespace
}  // namespace sinter::test
