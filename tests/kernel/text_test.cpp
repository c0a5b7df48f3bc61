#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "compiler/ir/parse.h"
#include "compiler/kernel/lower.h"
#include "compiler/kernel/parse.h"
#include "compiler/kernel/print.h"
#include "compiler/kernel/verify.h"
#include "compiler/support/errors.h"

/// Kernels as text, and what is wrong with them.
namespace sinter::test {
namespace {

std::string text_of(std::string_view graph) { return kernel::print(kernel::lower(ir::parse(graph), "fused")); }

/// What lowering gives, word for word: one chain, one row in which a half is summed wide, one join.
TEST(KernelText, of_lowered_regions) {
  EXPECT_EQ(text_of(R"(graph @g on cuda:0 (%x: f32[4,8]{1,4}, %s: f32[8]) -> (%z) {
    %y = mul %x, %s : f32[4,8]
    %z = add %y, 1.0 : f32[4,8]
  })"),
            R"(kernel @fused over [4, 8] (in f32 align 16, in f32 align 16, out f32 align 16) {
  %0 = load p0[i0 + 4*i1] : f32
  %1 = load p1[i1] : f32
  %2 = mul %0, %1 : f32
  %3 = 1.0 : f32
  %4 = add %2, %3 : f32
  store %4 to p2[8*i0 + i1]
}
)");
  EXPECT_EQ(text_of(R"(graph @g on cuda:0 (%x: f16[2,3,8]) -> (%m) {
    %w = cast %x : f32[2,3,8]
    %s = reduce sum %w over 2 : f32[2,3,1]
    %m = cast %s : f16[2,3,1]
  })"),
            R"(kernel @fused over [6] rows [8] (in f16 align 16, out f16 align 16) {
  %0 = load p0[8*i0 + i1] : f16
  %1 = cast %0 : f32
  %2 = reduce sum %1 : f32
  %3 = cast %2 : f16
  store %3 to p1[i0]
}
)");
  EXPECT_EQ(text_of(R"(graph @g on cuda:0 (%x: f32[6,8]) -> (%m, %s) {
    %m = reduce max %x over 1 : f32[6,1]
    %v = view %x + 0 : f32[2,3,8]
    %s = reduce sum %v over 1 : f32[2,1,8]
  })"),
            R"(kernel @fused over [2, 3] rows [8] (in f32 align 16, out f32 align 16, out f32 align 16) {
  %0 = load p0[24*i0 + 8*i1 + i2] : f32
  %1 = reduce max %0 : f32
  store %1 to p1[3*i0 + i1]
  store %0 to p2[8*i0 + i2] sum over group
}
)");
  EXPECT_EQ(text_of(R"(graph @g on cuda:0 (%a: f32[4,8], %b: f32[4,4]) -> (%y) {
    %y = join %a, %b over 1 : f32[4,12]
  })"),
            R"(kernel @fused over [4, 12] (in f32 align 16, in f32 align 16, out f32 align 16) {
  %0 = inside i1 in [0, 8) : b8
  %1 = load p0[8*i0 + i1] if %0 reach 32 : f32
  %2 = inside i1 in [8, 12) : b8
  %3 = load p1[-8 + 4*i0 + i1] if %2 reach 16 : f32
  %4 = where %0, %1, %3 : f32
  store %4 to p2[12*i0 + i1]
}
)");
}

constexpr std::string_view everything =
    R"(kernel @all over [4] rows [6, 2] (in bf16 align 2, scalar f64, out f32 align 8 in_place, out i64 align 16) exact generic {
  %0 = inside -1*i0 + 2*((3 + i1) / 4 % 3) in [-2, 5) : b8
  %1 = load p0[3 + 12*i0 + 2*i1 + i2] if %0 reach 48 : bf16
  %2 = cast %1 : f32
  %3 = load p1[0] : f64
  %4 = cast %3 : f32
  %5 = -inf : f32
  %6 = maximum %2, %5 : f32
  %7 = add %6, %4 : f32
  %8 = reduce max %7 : f32
  %9 = -3 : i64
  %10 = true : b8
  %11 = where %10, %9, %9 : i64
  store %8 to p2[i0]
  store %11 to p3[12*i0 + 2*i1 + i2 + 1*((i1))]
}
)";

TEST(KernelText, reads_back_as_it_was) {
  const kernel::Kernel kernel = kernel::parse(everything);
  EXPECT_EQ(kernel::print(kernel), everything);
  EXPECT_EQ(kernel::verify(kernel), std::vector<std::string>());
  EXPECT_EQ(kernel.reduced, 2u);
  EXPECT_FALSE(kernel.half_accuracy);
  EXPECT_TRUE(kernel.generic_sizes);
  EXPECT_TRUE(kernel.params[2].in_place);
}

TEST(KernelText, that_is_none_is_refused_wherever_it_breaks_off) {
  for (size_t length = 0; length + 2 < everything.size(); ++length) {
    EXPECT_THROW((void)kernel::parse(everything.substr(0, length)), UserError) << length;
  }
}

TEST(KernelText, failures_say_what_is_wrong) {
  const auto failure = [](std::string_view body) {
    try {
      (void)kernel::parse("kernel @k over [4] (in f32, out f32) {\n" + std::string(body) + "\n}");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const std::pair<std::string_view, std::string_view> failures[] = {
      {"%1 = load p0[i0] : f32", "values are numbered in order: this one is %0"},
      {"%0 = add %0, %0 : f32", "%0 does not come before it is used"},
      {"%0 = gelu %0 : f32", "there is no native op 'gelu'"},
      {"%0 = reduce mean %0 : f32", "there is no reduction 'mean'"},
      {"%0 = load p0[i7] : f32", "there is no loop i7"},
      {"%0 = load p0[1*((i0) / 0)] : f32", "a division by zero"},
      {"%0 = load q0[i0] : f32", "'q0' is no p0 or the like"},
  };
  for (const auto& [text, reason] : failures) {
    EXPECT_NE(failure(text).find(reason), std::string::npos) << failure(text);
  }
}

TEST(KernelVerify, names_what_back_ends_could_not_take) {
  const auto problems = [](std::string_view head, std::string_view body) {
    const auto found =
        kernel::verify(kernel::parse("kernel @k over " + std::string(head) + " {\n" + std::string(body) + "\n}"));
    return found.empty() ? std::string("none") : found.front();
  };
  constexpr std::string_view plain = "[4] (in f32, out f32)";
  EXPECT_EQ(problems(plain, "%0 = load p0[i0] : f32 store %0 to p1[i0]"), "none");
  EXPECT_EQ(problems(plain, "%0 = load p1[i0] : f32 store %0 to p1[i0]"), "%0: reads p1, an output");
  EXPECT_EQ(problems(plain, "%0 = load p0[i0] : f16 store %0 to p1[i0]"), "%0: p0 is f32");
  EXPECT_EQ(problems(plain, "%0 = load p0[i0] : f32 %1 = reduce sum %0 : f32 store %1 to p1[i0]"),
            "%1: no loop is reduced");
  EXPECT_EQ(problems(plain, "%0 = load p0[i0] : f32"), "p1: it is not stored");
  EXPECT_EQ(problems(plain, "%0 = load p0[i0] : f32 store %0 to p0[i0] store %0 to p1[i0]"),
            "the store to p0: it is no output");
  EXPECT_EQ(problems(plain, "%0 = 1.0 : f32 %1 = add %0 : f32 store %1 to p1[i0]"), "%1: add takes 2 operands");
  EXPECT_EQ(problems(plain, "%0 = 1 : f32 store %0 to p1[i0]"), "%0: a number of another kind");
  EXPECT_EQ(problems("[4] (in f16, out f16)", "%0 = load p0[i0] : f16 %1 = neg %0 : f16 store %1 to p1[i0]"),
            "%1: neg computes %0, a half");
  EXPECT_EQ(problems("[4] (in f32 align 3, out f32)", "%0 = load p0[i0] : f32 store %0 to p1[i0]"),
            "p0: 3 bytes are no alignment");
  EXPECT_EQ(problems("[4] (out f32, in f32)", "%0 = load p1[i0] : f32 store %0 to p0[i0]"),
            "p1: inputs come before outputs");
  EXPECT_EQ(problems("[] rows [4] (in b8, out b8)", "%0 = load p0[i0] : b8 %1 = reduce sum %0 : b8 store %1 to p1[0]"),
            "%1: sum does not join b8");
}

TEST(KernelVerify, makes_an_error_of_what_a_step_left) {
  const auto kernel = kernel::parse("kernel @k over [4] (in f32, out f32) { %0 = load p0[i0] : f32 }");
  try {
    kernel::require(kernel, "lower");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_EQ(error.where(), "lower");
    EXPECT_NE(std::string(error.what()).find("p1: it is not stored"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("%0 = load p0[i0] : f32"), std::string::npos);
  }
}

}  // namespace
}  // namespace sinter::test
