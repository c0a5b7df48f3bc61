#include "tests/emulator/nvrtc.h"

#include <gtest/gtest.h>

#include "compiler/codegen/cuda.h"
#include "compiler/codegen/cuda_attention.h"
#include "compiler/compile.h"
#include "compiler/ir/parse.h"
#include "tests/emulator/graph_trial.h"
#include "tests/emulator/op_kernels.h"

namespace sinter::test {
namespace {

class EveryText : public testing::TestWithParam<ir::DType> {};

/// The contiguous kernel of every op, and every layout of some ops: what a layout adds does not depend on the op.
std::vector<KernelSource> sources_of(ir::DType dtype) {
  std::vector<KernelSource> sources;
  const auto cases = op_cases(dtype);
  for (size_t i = 0; i < cases.size(); ++i) {
    const bool wanted = cases[i].name.ends_with("contiguous") || i / layouts_per_op % 8 == 0;
    if (wanted) sources.push_back(codegen::generate_cuda(cases[i].kernel, test_device()));
  }
  return sources;
}

TEST_P(EveryText, compiles_for_sm_80_and_sm_90) {
  const auto sources = sources_of(GetParam());
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << sources.size() << " kernels not compiled: SINTER_LIBTORCH names no LibTorch";
  for (const char* architecture : {"sm_80", "sm_90"}) EXPECT_EQ(nvrtc->compile(sources, architecture).log, "");
}

INSTANTIATE_TEST_SUITE_P(Dtypes, EveryText, testing::ValuesIn(kernel_dtypes()),
                         [](const auto& param) { return std::string(ir::name(param.param)); });

size_t count_of(std::string_view part, std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A sum of bytes is one of 16 bits in PTX, whose sign must be extended before it is converted.
TEST(Bytes, keep_the_sign_of_their_sums) {
  const auto graph = ir::parse(
      "graph @g on cuda:0 (%x: i8[64,64]) -> (%s) {\n"
      "%a = add %x, 2 : i8[64,64]\n%c = cast %a : f32[64,64]\n%s = reduce sum %c over 1 : f32[64,1] }");
  const std::vector sources{graph_trial("bytes", graph, /*generic=*/false, 1).source};
  ASSERT_NE(sources[0].text.find("load<pack<signed char, 16, 16>>"), std::string::npos) << sources[0].text;
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << "not compiled: SINTER_LIBTORCH names no LibTorch";
  const auto compiled = nvrtc->compile(sources, "compute_90");
  EXPECT_EQ(count_of("cvt.s16.s8", compiled.ptx), 16) << compiled.ptx;
}

TEST(Joins, compile_for_sm_90) {
  std::vector<KernelSource> sources;
  for (const std::string_view body :
       {"graph @g on cuda:0 (%a: f16[8,16], %b: f16[8,48]) -> (%y) { %y = join %a, %b over 1 : f16[8,64] }",
        "graph @g on cuda:0 (%a: i64[8,3], %b: i64[8,4]) -> (%y) { %y = join %a, %b over 1 : i64[8,7] }",
        "graph @g on cuda:0 (%a: f16[999,4], %b: f16[999,4]) -> (%y) { %y = join %a, %b over 1 : f16[999,8] }",
        "graph @g on cuda:0 (%a: f32[8,13], %b: f32[8,51]) -> (%m) {\n"
        "%j = join %a, %b over 1 : f32[8,64]\n%m = reduce max %j over 1 : f32[8,1] }"}) {
    for (const bool generic : {false, true}) sources.push_back(graph_trial("join", ir::parse(body), generic, 1).source);
  }
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << sources.size() << " kernels not compiled: SINTER_LIBTORCH names no LibTorch";
  EXPECT_EQ(nvrtc->compile(sources, "sm_90").log, "");
}

TEST(Gathers, compile_for_sm_80_and_sm_90) {
  std::vector<KernelSource> sources;
  for (const std::string_view body :
       {"graph @g on cuda:0 (%t: f16[9,64], %p: i64[800,1]) -> (%y) { %y = gather %t, %p over 0 : f16[800,64] }",
        "graph @g on cuda:0 (%t: f32[8,9], %p: i32[8,7]) -> (%y) { %y = gather %t, %p over 1 : f32[8,7] }",
        "graph @g on cuda:0 (%x: f16[800,64]) -> (%y) {\n"
        "%a = position over 1 : i64[800,64]\n%c = ge %a, 3 : b8[800,64]\n%y = where %c, %x, 0.0 : f16[800,64] }",
        "graph @g on cuda:0 (%t: f32[9,512], %p: i64[800,1]) -> (%m) {\n"
        "%g = gather %t, %p over 0 : f32[800,512]\n%m = reduce max %g over 1 : f32[800,1] }"}) {
    for (const bool generic : {false, true}) {
      sources.push_back(graph_trial("gather", ir::parse(body), generic, 1).source);
    }
  }
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << sources.size() << " kernels not compiled: SINTER_LIBTORCH names no LibTorch";
  for (const char* architecture : {"sm_80", "sm_90"}) EXPECT_EQ(nvrtc->compile(sources, architecture).log, "");
}

TEST(Attentions, compile_for_sm_80_and_sm_90) {
  std::vector<KernelSource> sources;
  for (const std::string_view body : {"graph @g on cuda:0 (%x: f16[800,49,32], %b: f16[1,49,49]) -> (%y) {\n"
                                      "%y = attention %x, %x, %x, %b scale 0.25 : f16[800,49,32] }",
                                      "graph @g on cuda:0 (%x: bf16[8,64,96]) -> (%y) { %y = attention %x, %x, %x "
                                      "scale 0.25 zeros : bf16[8,64,96] }"}) {
    sources.push_back(graph_trial("attention", ir::parse(body), false, 1).source);
  }
  const ir::Graph far = ir::parse(
      "graph @g on cuda:0 (%x: f16[999999,64,64]) -> (%y) { %y = attention %x, %x, %x scale 0.25 : f16[999999,64,64] "
      "}");
  sources.push_back(codegen::generate_cuda(kernel::attention_of(far, "fused_attention").value()));
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << sources.size() << " kernels not compiled: SINTER_LIBTORCH names no LibTorch";
  for (const char* architecture : {"sm_80", "sm_90"}) EXPECT_EQ(nvrtc->compile(sources, architecture).log, "");
}

TEST(Windows, compile_for_sm_90) {
  std::vector<KernelSource> sources;
  for (const std::string_view graph :
       {"graph @g on cuda:0 (%x: f16[8,64,28,28]{50176,1,1792,64}, %w: f16[64,1,7,7]) -> (%y) {\n"
        "%y = call aten.convolution(%x, %w, none, [1, 1], [3, 3], [1, 1], false, [0, 0], 64) "
        ": f16[8,64,28,28]{50176,1,1792,64} }",
        "graph @g on cuda:0 (%x: bf16[8,64,28,28]) -> (%y) {\n"
        "%y, %i = call aten.max_pool2d_with_indices(%x, [3, 3], [2, 2], [1, 1], [1, 1], false) "
        ": bf16[8,64,14,14], i64[8,64,14,14] }",
        "graph @g on cuda:0 (%x: f32[8,64,29,29]) -> (%y) {\n"
        "%y = call aten.avg_pool2d(%x, [3, 3], [2, 2], [0, 0], false, true, none) : f32[8,64,14,14] }"}) {
    CompileOptions options;
    options.device = test_device();
    EntryReport report;
    for (KernelSource& kernel : compile(ir::parse(graph), options, report).kernels)
      sources.push_back(std::move(kernel));
  }
  EXPECT_EQ(sources.size(), 4U);
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << sources.size() << " kernels not compiled: SINTER_LIBTORCH names no LibTorch";
  EXPECT_EQ(nvrtc->compile(sources, "sm_90").log, "");
}

/// The kernel that a graph of pointwise operators becomes.
KernelSource kernel_of(std::string_view graph) {
  CompileOptions options;
  options.device = test_device();
  EntryReport report;
  const Plan plan = compile(ir::parse(graph), options, report);
  EXPECT_EQ(plan.kernels.size(), 1U);
  return plan.kernels.at(0);
}

/// Lines of PTX that round a product and a sum together.
size_t fused_roundings(const KernelSource& kernel) {
  const auto nvrtc = Nvrtc::open();
  const auto compiled = nvrtc->compile(std::span(&kernel, 1), "compute_90");
  EXPECT_EQ(compiled.log, "");
  EXPECT_NE(compiled.ptx.find("st.global"), std::string::npos);
  size_t count = 0;
  for (size_t at = compiled.ptx.find("fma.rn"); at != std::string::npos; at = compiled.ptx.find("fma.rn", at + 1))
    ++count;
  return count;
}

TEST(Contraction, never_joins_what_two_operators_round) {
  if (!Nvrtc::open()) GTEST_SKIP() << "no NVRTC under SINTER_LIBTORCH";
  const KernelSource kernel = kernel_of(R"(
graph @norm on cuda:0 (%a: f32[1], %b: f32[1]) -> (%y) {
  %p = call aten.mul.Tensor(%a, %a) : f32[1]
  %q = call aten.mul.Tensor(%b, %b) : f32[1]
  %d = call aten.sub.Tensor(%p, %q, 1) : f32[1]
  %y = call aten.sqrt(%d) : f32[1]
}
)");
  EXPECT_EQ(fused_roundings(kernel), 0U) << kernel.text;
}

TEST(Contraction, is_written_where_one_operator_rounds_once) {
  if (!Nvrtc::open()) GTEST_SKIP() << "no NVRTC under SINTER_LIBTORCH";
  const KernelSource kernel = kernel_of(R"(
graph @sum on cuda:0 (%a: f32[1], %b: f32[1]) -> (%y) {
  %y = call aten.add.Tensor(%a, %b, 0.1) : f32[1]
}
)");
  EXPECT_EQ(fused_roundings(kernel), 1U) << kernel.text;
}

}  // namespace
}  // namespace sinter::test
