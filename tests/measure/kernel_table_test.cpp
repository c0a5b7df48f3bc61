#include "bench/measure/kernel_table.h"

#include <gtest/gtest.h>

#include "compiler/support/symbol_name.h"

namespace sinter::test {
namespace {

using bench::KernelOrigin;
using bench::TracedKernel;

TEST(KernelName, a_mangled_template_loses_return_type_parameters_and_anonymous_namespaces) {
  // void at::native::(anonymous namespace)::copy<float, 4>(float*, int)
  EXPECT_EQ(readable_symbol("_ZN2at6native12_GLOBAL__N_14copyIfLi4EEEvPfi"), "at::native::copy<float, 4>");
}

TEST(KernelName, a_parameter_that_is_a_function_is_dropped_with_the_others) {
  // void apply<float>(float (*)(int), int)
  EXPECT_EQ(readable_symbol("_Z5applyIfEvPFT_iEi"), "apply<float>");
}

TEST(KernelName, a_name_that_is_not_mangled_stays_as_it_is) {
  EXPECT_EQ(readable_symbol("fused_add_maximum"), "fused_add_maximum");
  EXPECT_EQ(readable_symbol("sm90_xmma_gemm (f16)"), "sm90_xmma_gemm (f16)");
}

EntryReport report_of_two_layers() {
  EntryReport entry;
  KernelRecord& kernel = entry.kernels.emplace_back();
  kernel.name = "fused_add_maximum";
  kernel.ops = {"add", "maximum"};
  kernel.modules = {"conv1", "relu", "conv1"};
  entry.externs.push_back({"aten::convolution", 2, {"conv1", "conv2"}});
  return entry;
}

TEST(KernelTable, rows_say_whose_a_kernel_is_and_add_up_its_runs) {
  const std::vector<TracedKernel> kernels = {
      {"gemm", 5, "aten::convolution", 0}, {"fused_add_maximum", 2, "", 0}, {"gemm", 7, "aten::convolution", 1},
      {"fused_add_maximum", 1, "", 0},     {"strange", 0.5, "", 0},
  };
  const auto rows = bench::kernel_table(kernels, report_of_two_layers());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].name, "gemm");
  EXPECT_EQ(rows[0].origin, KernelOrigin::library);
  EXPECT_EQ(rows[0].ops, std::vector<std::string>{"aten::convolution"});
  EXPECT_EQ(rows[0].modules, (std::vector<std::string>{"conv1", "conv2"}));
  EXPECT_EQ(rows[0].count, 2);
  EXPECT_DOUBLE_EQ(rows[0].microseconds, 12);
  EXPECT_EQ(rows[1].origin, KernelOrigin::generated);
  EXPECT_EQ(rows[1].ops, (std::vector<std::string>{"add", "maximum"}));
  EXPECT_EQ(rows[1].modules, (std::vector<std::string>{"conv1", "relu"}));
  EXPECT_DOUBLE_EQ(rows[1].microseconds, 3);
  EXPECT_EQ(rows[2].origin, KernelOrigin::unknown);
}

TEST(KernelTable, generated_kernels_of_one_name_are_one_row_with_the_modules_of_all) {
  EntryReport entry = report_of_two_layers();
  KernelRecord& larger = entry.kernels.emplace_back(entry.kernels[0]);
  larger.modules = {"conv2", "relu"};
  const auto rows = bench::kernel_table({{"fused_add_maximum", 2, "", 0}, {"fused_add_maximum", 1, "", 0}}, entry);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].modules, (std::vector<std::string>{"conv1", "relu", "conv2"}));
}

TEST(KernelTable, one_kernel_under_two_operators_is_two_rows) {
  const auto rows = bench::kernel_table({{"gemm", 5, "aten::mm", 0}, {"gemm", 6, "aten::addmm", 0}}, {});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].ops, std::vector<std::string>{"aten::addmm"}) << "the longer one first";
  EXPECT_TRUE(rows[0].modules.empty());
}

TEST(KernelTable, text_has_a_line_for_each_row_and_totals) {
  const std::vector<TracedKernel> kernels = {{"gemm", 5, "aten::convolution", 1}, {"fused_add_maximum", 2, "", 0}};
  const std::string text = bench::to_text(bench::kernel_table(kernels, report_of_two_layers()));
  EXPECT_NE(text.find("aten::convolution  [conv2]"), std::string::npos) << text;
  EXPECT_NE(text.find("add, maximum  [conv1, relu]"), std::string::npos) << text;
  EXPECT_NE(text.find("1 generated in 2.0 us, 1 library in 5.0 us\n"), std::string::npos) << text;
}

TEST(GraphKernels, take_the_operators_of_the_same_kernels_run_one_by_one) {
  const std::vector<TracedKernel> direct = {
      {"gemm", 5, "aten::mm", 0}, {"fused", 1, "", 0}, {"gemm", 5, "aten::addmm", 0}, {"reduce", 1, "aten::addmm", 0}};
  std::vector<TracedKernel> graph = {{"gemm", 4, "", 0}, {"fused", 1, "", 0}, {"gemm", 4, "", 0}, {"reduce", 1, "", 0}};
  bench::attribute_like(direct, graph);
  EXPECT_EQ(graph[0].op, "aten::mm");
  EXPECT_EQ(graph[1].op, "");
  EXPECT_EQ(graph[2].op, "aten::addmm");
  EXPECT_EQ(graph[3].op, "aten::addmm");
  EXPECT_DOUBLE_EQ(graph[0].microseconds, 4) << "times are the graph's own";
}

TEST(GraphKernels, one_that_the_direct_run_lacks_stays_unknown_and_shifts_nothing) {
  const std::vector<TracedKernel> direct = {
      {"a", 1, "aten::a", 0}, {"b", 1, "aten::b", 3}, {"skipped", 1, "aten::s", 0}, {"c", 1, "aten::c", 0}};
  std::vector<TracedKernel> graph = {{"copy", 1, "", 0}, {"a", 1, "", 0}, {"b", 1, "", 0}, {"c", 1, "", 0}};
  bench::attribute_like(direct, graph);
  EXPECT_EQ(graph[0].op, "");
  EXPECT_EQ(graph[1].op, "aten::a");
  EXPECT_EQ(graph[2].op, "aten::b");
  EXPECT_EQ(graph[2].call, 3);
  EXPECT_EQ(graph[3].op, "aten::c");
}

}  // namespace
}  // namespace sinter::test
