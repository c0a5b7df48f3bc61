#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "compiler/codegen/llvm.h"
#include "compiler/support/errors.h"
#include "tests/llvm/kernels.h"

namespace sinter::test {
namespace {

using ir::DType;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
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

TEST(LlvmText, of_an_empty_kernel_returns_at_once) { expect_golden("empty", gelu(0), 512); }

TEST(LlvmText, of_a_kernel_that_reads_under_guards_is_refused) {
  kernel::Kernel kernel = add_bias_relu(64, 256, DType::f32);
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
