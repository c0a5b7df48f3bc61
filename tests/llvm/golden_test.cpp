#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "compiler/codegen/llvm.h"
#include "compiler/ir/parse.h"
#include "compiler/support/errors.h"
#include "tests/llvm/kernels.h"
#include "tests/llvm/rows.h"

namespace sinter::test {
namespace {

using ir::DType;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

kernel::Kernel kernel_of(const std::string& text) { return kernel::lower(ir::parse(text), "fused_row"); }

/// Of the rows of a matrix.
kernel::Kernel softmax(std::string_view type) {
  const std::string text = fmt::format("graph @softmax on cpu (%x: {}) -> (%y) {{\n", type);
  const std::string rows(type.substr(0, type.find(',')));
  return kernel_of(fmt::format(R"({0}
    %m = reduce max %x over 1 : {1},1]
    %d = sub %x, %m : {2}
    %e = exp %d : {2}
    %s = reduce sum %e over 1 : {1},1]
    %y = div %e, %s : {2}
  }})",
                               text, rows, type));
}

kernel::Kernel column_sum(std::string_view type) {
  const std::string columns(type.substr(type.find(',')));
  return kernel_of(
      fmt::format("graph @sum on cpu (%x: {0}) -> (%y) {{\n %y = reduce sum %x over 0 : f32[1{1}\n}}", type, columns));
}

/// Compares with goldens/STEM.ll; SINTER_UPDATE_GOLDENS=1 writes it instead.
void expect_golden(const std::string& stem, const kernel::Kernel& kernel, int vector_bits) {
  const std::string text = codegen::generate_llvm(kernel, {.vector_bits = vector_bits}).text;
  const std::filesystem::path path = std::filesystem::path(SINTER_GOLDENS) / (stem + ".ll");
  if (std::getenv("SINTER_UPDATE_GOLDENS") != nullptr) std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(text, read(path)) << "run with SINTER_UPDATE_GOLDENS=1 to accept";
}

TEST(LlvmText, of_a_flat_kernel_is_one_vector_loop_and_a_masked_tail) { expect_golden("gelu_512", gelu(1 << 20), 512); }

TEST(LlvmText, calls_the_vector_functions_of_the_width) { expect_golden("gelu_256", gelu(1 << 20), 256); }

TEST(LlvmText, without_vector_functions_calls_libm_lane_by_lane) { expect_golden("gelu_128", gelu(1 << 20), 128); }

TEST(LlvmText, of_a_bias_loops_over_rows) { expect_golden("bias_bf16_512", add_bias_relu(64, 256, DType::bf16), 512); }

TEST(LlvmText, of_a_transposed_read_gathers) { expect_golden("transposed_256", transposed_add(64, 128), 256); }

TEST(LlvmText, joins_short_rows_into_one_loop) {
  expect_golden("short_rows_512", add_bias_relu(64, 3, DType::f32), 512);
}

TEST(LlvmText, of_rows_goes_through_each_in_passes_and_keeps_what_is_dear) {
  expect_golden("softmax_512", softmax("f32[64,100]"), 512);
}

TEST(LlvmText, of_rows_side_by_side_has_one_in_every_lane) {
  expect_golden("column_sum_256", column_sum("f32[50,1000]"), 256);
}

TEST(LlvmText, of_rows_of_several_lines_loops_over_these) {
  const RowBody& group_norm = row_bodies()[4];
  expect_golden("group_norm_256", kernel_of(text_of(group_norm, {8, 21}, "bf16", "f32", "cpu")), 256);
}

TEST(LlvmText, of_a_join_reads_each_operand_where_it_lies) {
  expect_golden("join_512", kernel_of(R"(graph @cat on cpu (%a: f32[64,40], %b: f32[64,24]) -> (%y) {
    %j = join %a, %b over 1 : f32[64,64]
    %y = maximum %j, 0 : f32[64,64]
  })"),
                512);
}

TEST(LlvmText, of_an_empty_kernel_returns_at_once) { expect_golden("empty", gelu(0), 512); }

TEST(LlvmText, of_rows_that_read_under_guards_is_refused) {
  kernel::Kernel kernel = softmax("f32[64,100]");
  kernel.body.push_back({.operation = kernel::Inside{{{0, {0, 1}}, {}}, 0, 8}, .dtype = DType::b8});
  EXPECT_THROW((void)codegen::generate_llvm(kernel, {.vector_bits = 512}), InternalError);
}

TEST(KernelSource, says_what_a_launch_does) {
  kernel::Kernel kernel = add_bias_relu(64, 256, DType::f32);
  kernel.comment = {"fused_add_relu: fc1, act"};
  const KernelSource source = codegen::generate_llvm(kernel, {.vector_bits = 512});
  EXPECT_EQ(source.name, "fused_add_relu");
  EXPECT_EQ(source.comment, "; fused_add_relu: fc1, act\n");
  EXPECT_EQ(source.numel, 64 * 256);
  EXPECT_EQ(source.bytes, 4 * (2 * 64 * 256 + 256));
  EXPECT_EQ(source.granule % 256, 0) << "ranges start at rows";
  EXPECT_EQ(source.ops, (std::vector<std::string>{"add", "maximum"}));
}

/// What memory bounds is done sooner than what computes.
TEST(KernelSource, says_how_many_points_are_worth_a_thread) {
  const KernelSource relu = codegen::generate_llvm(add_bias_relu(64, 256, DType::f32), {.vector_bits = 512});
  const KernelSource curved = codegen::generate_llvm(gelu(1 << 16), {.vector_bits = 512});
  EXPECT_GT(relu.range, 30000);
  EXPECT_LT(curved.range, relu.range / 3);
}

TEST(KernelSource, of_rows_counts_rows) {
  const KernelSource source = codegen::generate_llvm(softmax("f32[64,100]"), {.vector_bits = 512});
  EXPECT_EQ(source.numel, 64);
  EXPECT_EQ(source.row_points, 100);
  EXPECT_EQ(source.granule, 41) << "the fewest rows with 4096 points";
  EXPECT_EQ(codegen::generate_llvm(softmax("f32[4,5000]"), {}).granule, 1);
  EXPECT_EQ(codegen::generate_llvm(column_sum("f32[50,1000]"), {.vector_bits = 512}).granule, 128)
      << "whole blocks of rows that lie side by side";
}

TEST(KernelSource, of_rows_with_sizes_as_parameters_has_one_text) {
  const auto text = [](std::string_view type) {
    kernel::Kernel kernel = softmax(type);
    kernel.generic_sizes = true;
    return codegen::generate_llvm(kernel, {.vector_bits = 512}).text;
  };
  EXPECT_EQ(text("f32[64,100]"), text("f32[7,333]"));
}

TEST(KernelSource, of_equal_kernels_has_equal_text_whatever_the_comment) {
  kernel::Kernel one = gelu(4096);
  kernel::Kernel two = gelu(4096);
  two.comment = {"another module"};
  EXPECT_EQ(codegen::generate_llvm(one, {}).text, codegen::generate_llvm(two, {}).text);
}

TEST(LlvmText, of_arithmetic_in_halves_is_refused) {
  KernelBuilder b("fused_add", {8});
  const auto x = b.input(DType::f16, {1});
  b.output(DType::f16, b.op("add", {x, x}, DType::f16), {1});
  EXPECT_THROW((void)codegen::generate_llvm(b.kernel(), {}), InternalError);
}

}  // namespace
}  // namespace sinter::test
