#include "compiler/compile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "compiler/ir/parse.h"
#include "compiler/passes/pipeline.h"
#include "compiler/plan_print.h"
#include "compiler/support/errors.h"

namespace sinter {
namespace {

constexpr std::string_view two_layers = R"(
graph @mlp on cuda:0 (%x: f16[512,64]) -> (%o) {
  %w = state 0 "w" : f16[64,64]
  %h = call aten.mm(%x, %w) : f16[512,64]  # fc1  net.cpp:1
  %r = call aten.abs_(%h) mutates(0) functional aten.abs : f16[512,64] alias %h + 0  # act1  net.cpp:2
  %g = call aten.mm(%r, %w) : f16[512,64]  # fc2  net.cpp:3
  %o = call aten.abs(%g) : f16[512,64]  # act2  net.cpp:4
}
)";

Plan compile_text(std::string_view text, Backend backend, EntryReport& report) {
  CompileOptions options;
  options.device.backend = backend;
  return compile(ir::parse(text), options, report);
}

TEST(Compile, turns_a_captured_graph_into_launches_and_calls) {
  EntryReport report;
  const Plan plan = compile_text(two_layers, Backend::cuda, report);
  EXPECT_EQ(plan.calls.size(), 2u) << print(plan);
  EXPECT_EQ(std::count_if(plan.steps.begin(), plan.steps.end(),
                          [](const Step& step) { return std::holds_alternative<Launch>(step); }),
            2);
  ASSERT_FALSE(plan.kernels.empty());
  EXPECT_EQ(plan.kernels[0].name, "fused_abs");
  EXPECT_EQ(plan.kernels[0].modules, std::vector<std::string>{"act1"});
  EXPECT_NE(plan.kernels[0].text.find("fused_abs"), std::string::npos);
}

TEST(Compile, reports_a_phase_for_every_pass_and_the_calls_that_stay) {
  EntryReport report;
  compile_text(two_layers, Backend::cuda, report);
  for (const passes::PipelineRow& row : passes::pipeline()) {
    const std::string phase = "pass " + std::string(row.name);
    EXPECT_TRUE(std::any_of(report.phases.begin(), report.phases.end(), [&](const PhaseTime& time) {
      return time.name == phase;
    })) << phase;
  }
  ASSERT_EQ(report.externs.size(), 1u);
  EXPECT_EQ(report.externs[0].op, "aten::mm");
  EXPECT_EQ(report.externs[0].calls, 2);
  EXPECT_EQ(report.externs[0].modules, (std::vector<std::string>{"fc1", "fc2"}));
}

std::string line_of(const SegmentOwner& owner) {
  return std::string(name(owner.kind)) + " " + owner.module + " " + owner.source + " " + std::to_string(owner.bytes);
}

TEST(Compile, reports_who_holds_the_bytes_of_the_fullest_moment) {
  EntryReport report;
  compile_text(R"(
graph @step on cuda:0 (%x: f32[128,128]) -> (%o) {
  %w = state 0 "w" : f32[128,128]
  %a = call aten.exp(%x) : f32[128,128]  # one  net.cpp:1
  %h = call aten.mm(%a, %w) : f32[128,128]  # two  net.cpp:2
  %b = call aten.mm(%h, %a) : f32[128,128]  # three  net.cpp:3
  %s = call aten.sum.dim_IntList(%b, [0], false, none) : f32[128]  # four  net.cpp:4
  %o = call aten.exp(%s) : f32[128]  # four  net.cpp:5
})",
               Backend::cuda, report);
  std::vector<std::string> lines;
  for (const SegmentOwner& owner : report.memory.owners) lines.push_back(line_of(owner));
  // While the second product runs, its operands and its result live.
  EXPECT_EQ(lines, (std::vector<std::string>{"temporaries one net.cpp:1 65536", "library results three net.cpp:3 65536",
                                             "library results two net.cpp:2 65536"}));
}

TEST(Compile, counts_no_call_that_is_made_once) {
  EntryReport report;
  const Plan plan = compile_text(R"(
graph @g on cpu (%x: f32[128,128]) -> (%c) {
  %a = call aten.eye(8, dtype(f32), none, none, none) : f32[128,128]
  %b = call aten.mm(%a, %a) : f32[128,128]
  %c = call aten.mm(%b, %x) : f32[128,128]
})",
                                 Backend::llvm, report);
  EXPECT_EQ(plan.once.size(), 3u) << print(plan);
  ASSERT_EQ(report.externs.size(), 1u);
  EXPECT_EQ(report.externs[0].op, "aten::mm");
  EXPECT_EQ(report.externs[0].calls, 1);
}

TEST(Compile, writes_equal_kernels_once) {
  EntryReport report;
  const Plan plan = compile_text(R"(
graph @g on cpu (%x: f32[128,128]) -> (%c) {
  %a = call aten.exp(%x) : f32[128,128]  # one
  %m = call aten.mm(%a, %a) : f32[128,128]
  %b = call aten.exp(%m) : f32[128,128]  # two
  %n = call aten.mm(%b, %x) : f32[128,128]
  %d = call aten.exp(%n) : f32[128,128]  # three
  %c = call aten.mm(%d, %x) : f32[128,128]
})",
                                 Backend::llvm, report);
  EXPECT_LE(plan.kernels.size(), 2u) << "in place and not\n" << print(plan);
}

TEST(Compile, a_kernel_that_launches_share_names_the_modules_and_sources_of_all) {
  EntryReport report;
  const Plan plan = compile_text(R"(
graph @g on cuda:0 (%x: f16[128,128]) -> (%a, %b, %c) {
  %a = call aten.exp(%x) : f16[128,128]  # one  net.cpp:1
  %m = call aten.mm(%a, %x) : f16[128,128]
  %b = call aten.exp(%m) : f16[128,128]  # two  net.cpp:2
  %n = call aten.mm(%b, %x) : f16[128,128]
  %c = call aten.exp(%n) : f16[128,128]  # two  net.cpp:2
})",
                                 Backend::cuda, report);
  ASSERT_EQ(plan.kernels.size(), 1u) << print(plan);
  EXPECT_EQ(plan.kernels[0].modules, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(plan.kernels[0].sources, (std::vector<std::string>{"net.cpp:1", "net.cpp:2"}));
}

TEST(Compile, names_the_pass_that_failed_and_saves_the_graph_that_went_in) {
  EntryReport report;
  try {
    compile_text(
        "graph @g on cpu (%x: f32[4]) -> (%x) {\n  %v = call aten.view.dtype(%x, dtype(i32)) : i32[4] alias %x + 0\n"
        "  %y = call aten.relu_(%v) mutates(0) functional aten.relu : i32[4] alias %x + 0\n}\n",
        Backend::llvm, report);
    FAIL() << "a write through another dtype was compiled";
  } catch (const InternalError& error) {
    EXPECT_EQ(error.where(), "functionalize");
    EXPECT_TRUE(std::filesystem::exists(error.artifact())) << error.artifact();
    std::filesystem::remove(error.artifact());
  }
}

TEST(Compile, refuses_an_unknown_pass_by_name) {
  ir::Graph graph = ir::parse("graph @g on cpu (%x: f32[4]) -> (%x) {\n}\n");
  EXPECT_THROW(passes::run_pass("fuze", graph, {}), UserError);
}

TEST(Compile, takes_empty_and_zero_dim_tensors) {
  for (const Backend backend : {Backend::llvm, Backend::cuda}) {
    EntryReport report;
    const Plan plan = compile_text(R"(
graph @g on cpu (%x: f32[0,4], %s: f32[]) -> (%a, %b) {
  %a = call aten.exp(%x) : f32[0,4]
  %b = call aten.exp(%s) : f32[]
})",
                                   backend, report);
    EXPECT_EQ(plan.outputs.size(), 2u);
  }
}

}  // namespace
}  // namespace sinter
