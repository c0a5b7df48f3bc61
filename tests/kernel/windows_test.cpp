#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "compiler/ir/parse.h"
#include "compiler/kernel/lower.h"
#include "compiler/kernel/print.h"
#include "compiler/kernel/windows.h"

/// Kernels whose rows are windows.
namespace sinter::test {
namespace {

using kernel::Kernel;
using kernel::WindowStage;

Kernel lowered(std::string_view text) { return kernel::lower(ir::parse(text), "fused"); }

constexpr std::string_view padded =
    R"(graph @g on cuda:0 (%x: f16[2,8,6,6]{288,1,48,8}, %w: f32[8,1,3,3]{1,72,24,8}) -> (%y) {
  %o = cast 0.0 : f16[2,8,6,1]{48,1,8,8}
  %p = join %o, %x, %o over 3 : f16[2,8,6,8]{384,1,64,8}
  %q = cast 0.0 : f16[2,8,1,8]{64,1,64,8}
  %i = join %q, %p, %q over 2 : f16[2,8,8,8]{512,1,64,8}
  %v = view %i + 0 : f16[2,8,6,6,3,3]{512,1,64,8,64,8}
  %c = cast %v : f32[2,8,6,6,3,3]{2592,9,432,72,3,1}
  %k = view %w + 0 : f32[8,1,1,3,3]{1,1,1,24,8}
  %m = mul %c, %k : f32[2,8,6,6,3,3]{2592,9,432,72,3,1}
  %s = reduce sum %m over 4, 5 : f32[2,8,6,6,1,1]{288,1,48,8,1,1}
  %u = view %s + 0 : f32[2,8,6,6]{288,1,48,8}
  %y = cast %u : f16[2,8,6,6]{288,1,48,8}
})";

TEST(Windows, of_a_padded_image_are_read_under_one_guard) {
  const std::string text = kernel::print(lowered(padded));
  EXPECT_NE(text.find("%10 = load p0[-56 + 288*i0 + 48*i1 + 8*i2 + i3 + 48*i4 + 8*i5] if %9 reach 576"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("where %9, %10, %2"), std::string::npos) << text;
}

TEST(Windows, are_shifted_along_the_loop_with_the_shortest_steps) {
  const Kernel k = lowered(padded);
  const auto windows = kernel::windows_of(k);
  ASSERT_TRUE(windows);
  EXPECT_EQ(windows->lanes, 3u);
  EXPECT_EQ(windows->tile, 2u);
  EXPECT_EQ(windows->taps, 5u);
  EXPECT_EQ(windows->step, 1);
  EXPECT_EQ(windows->spread, 1);
  EXPECT_TRUE(windows->slides);
  for (size_t slot = 0; slot < k.body.size(); ++slot) {
    const auto* load = std::get_if<kernel::Load>(&k.body[slot].operation);
    if (load == nullptr) continue;
    EXPECT_EQ(windows->stages[slot], load->param == 0 ? WindowStage::position : WindowStage::tap);
  }
}

TEST(Windows, count_the_bytes_of_their_image_once) {
  EXPECT_EQ(lowered(R"(graph @g on cuda:0 (%x: f32[40]) -> (%y) {
    %v = view %x + 0 : f32[36,5]{1,1}
    %y = reduce sum %v over 1 : f32[36,1]
  })")
                .bytes_moved(),
            (40 + 36) * 4);
}

TEST(Windows, are_no_rows_of_many_points_or_several_passes) {
  EXPECT_FALSE(kernel::windows_of(lowered(R"(graph @long on cuda:0 (%x: f32[1000]) -> (%y) {
    %v = view %x + 0 : f32[800,200]{1,1}
    %y = reduce sum %v over 1 : f32[800,1]
  })")));
  EXPECT_FALSE(kernel::windows_of(lowered(R"(graph @softmax on cuda:0 (%x: f32[36]) -> (%y) {
    %v = view %x + 0 : f32[32,5]{1,1}
    %m = reduce max %v over 1 : f32[32,1]
    %d = sub %v, %m : f32[32,5]
    %y = reduce sum %d over 1 : f32[32,1]
  })")));
  EXPECT_FALSE(kernel::windows_of(lowered(R"(graph @columns on cuda:0 (%x: f32[5,64]) -> (%y) {
    %y = reduce sum %x over 0 : f32[1,64]
  })")));
}

}  // namespace
}  // namespace sinter::test
