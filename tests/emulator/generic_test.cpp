#include <gtest/gtest.h>

#include <set>
#include <string>

#include "compiler/codegen/cuda.h"
#include "compiler/codegen/llvm.h"
#include "tests/emulator/compare.h"
#include "tests/llvm/kernels.h"

/// Texts that take sizes as parameters: which sizes share one. What they compute is compared where all kernels are.
namespace sinter::test {
namespace {

using ir::DType;
using kernel::Kernel;

std::string cuda_text(Kernel kernel) {
  kernel.generic_sizes = true;
  return codegen::generate_cuda(kernel, test_device()).text;
}

std::string llvm_text(Kernel kernel) {
  kernel.generic_sizes = true;
  return codegen::generate_llvm(kernel, {.vector_bits = 512}).text;
}

TEST(GenericText, of_a_flat_kernel_is_one_for_all_lengths) {
  const std::string cuda = cuda_text(gelu(2));
  const std::string llvm = llvm_text(gelu(2));
  for (const int64_t numel : {3, 31, 1024, 1025, 1 << 20}) {
    EXPECT_EQ(cuda_text(gelu(numel)), cuda) << numel;
    EXPECT_EQ(llvm_text(gelu(numel)), llvm) << numel;
  }
}

TEST(GenericText, of_a_bias_is_one_for_all_numbers_of_rows) {
  const std::string cuda = cuda_text(add_bias_relu(2, 768, DType::f32));
  const std::string llvm = llvm_text(add_bias_relu(2, 768, DType::f32));
  for (const int64_t rows : {3, 7, 64, 768, 1000}) {
    EXPECT_EQ(cuda_text(add_bias_relu(rows, 768, DType::f32)), cuda) << rows;
    EXPECT_EQ(llvm_text(add_bias_relu(rows, 768, DType::f32)), llvm) << rows;
  }
}

TEST(GenericText, of_short_rows_is_one_for_all_numbers_of_rows) {
  const std::string cuda = cuda_text(add_bias_relu(17, 10, DType::f32));
  const std::string llvm = llvm_text(add_bias_relu(17, 10, DType::f32));
  for (const int64_t rows : {5, 10, 64, 999}) {
    EXPECT_EQ(cuda_text(add_bias_relu(rows, 10, DType::f32)), cuda) << rows;
    EXPECT_EQ(llvm_text(add_bias_relu(rows, 10, DType::f32)), llvm) << rows;
  }
}

TEST(GenericText, of_rows_of_any_length_has_few_forms) {
  std::set<std::string> cuda;
  std::set<std::string> llvm;
  for (int64_t columns = 2; columns < 300; ++columns) {
    cuda.insert(cuda_text(add_bias_relu(6, columns, DType::f32)));
    llvm.insert(llvm_text(add_bias_relu(6, columns, DType::f32)));
  }
  EXPECT_LE(cuda.size(), 2);
  EXPECT_LE(llvm.size(), 2);
}

TEST(GenericText, of_a_transposed_read_has_few_forms) {
  std::set<std::string> cuda;
  std::set<std::string> llvm;
  for (int64_t rows = 2; rows < 70; ++rows) {
    cuda.insert(cuda_text(transposed_add(rows, 64)));
    llvm.insert(llvm_text(transposed_add(rows, 64)));
  }
  EXPECT_LE(cuda.size(), 4);
  EXPECT_LE(llvm.size(), 3);
}

TEST(GenericText, holds_no_size_and_passes_each) {
  Kernel kernel = add_bias_relu(977, 768, DType::f32);
  kernel.generic_sizes = true;
  const KernelSource source = codegen::generate_cuda(kernel, test_device());
  EXPECT_EQ(source.text.find("977"), std::string::npos) << source.text;
  EXPECT_FALSE(source.sizes.empty());
  kernel.generic_sizes = false;
  EXPECT_TRUE(codegen::generate_cuda(kernel, test_device()).sizes.empty());
}

}  // namespace
}  // namespace sinter::test
