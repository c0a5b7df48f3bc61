#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "compiler/codegen/llvm.h"
#include "compiler/support/errors.h"
#include "runtime/llvm_jit.h"
#include "tests/llvm/kernels.h"

namespace sinter::test {
namespace {

KernelSource source_of(std::string name, std::string text) {
  KernelSource source;
  source.name = std::move(name);
  source.text = std::move(text);
  return source;
}

float run_gelu(const runtime::CompiledCpuKernel& kernel, float x) {
  float y = 0;
  const std::array<const void*, 2> params{&x, &y};
  kernel(params.data(), 0, 1);
  return y;
}

TEST(LlvmJit, keeps_a_kernel_alive_after_the_compiler_is_gone) {
  auto jit = std::make_unique<runtime::LlvmJit>();
  const auto kernel = jit->compile(codegen::generate_llvm(gelu(1), {.vector_bits = runtime::host_vector_bits()}));
  jit.reset();
  EXPECT_FLOAT_EQ(run_gelu(*kernel, 1.0f), 0.5f * (1 + std::erf(1.0f / 1.41421f)));
}

TEST(LlvmJit, compiles_kernels_of_one_name_on_several_threads) {
  runtime::LlvmJit jit;
  const KernelSource source = codegen::generate_llvm(gelu(1), {.vector_bits = runtime::host_vector_bits()});
  std::vector<std::shared_ptr<const runtime::CompiledCpuKernel>> kernels(8);
  {
    std::vector<std::jthread> threads;
    for (auto& kernel : kernels) threads.emplace_back([&] { kernel = jit.compile(source); });
  }
  for (const auto& kernel : kernels) EXPECT_FLOAT_EQ(run_gelu(*kernel, 0.0f), 0.0f);
}

TEST(LlvmJit, names_the_line_of_text_it_cannot_read_and_saves_the_text) {
  runtime::LlvmJit jit;
  try {
    (void)jit.compile(source_of("broken", "define void @broken() {\n  %x = fadd\n}\n"));
    FAIL() << "compiled";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("expected type"), std::string::npos) << error.what();
    EXPECT_EQ(error.where(), "llvm");
    EXPECT_TRUE(std::filesystem::exists(error.artifact()));
    std::filesystem::remove(error.artifact());
  }
}

TEST(LlvmJit, names_the_function_that_the_process_does_not_have) {
  runtime::LlvmJit jit;
  const std::string text =
      "declare void @no_such_function()\n"
      "define void @caller(ptr %params, i64 %begin, i64 %end) {\n  call void @no_such_function()\n  ret void\n}\n";
  try {
    (void)jit.compile(source_of("caller", text));
    FAIL() << "compiled";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("no_such_function"), std::string::npos) << error.what();
    std::filesystem::remove(error.artifact());
  }
  (void)jit.compile(codegen::generate_llvm(gelu(1), {.vector_bits = 256}));
}

TEST(LlvmJit, refuses_text_that_defines_another_function) {
  runtime::LlvmJit jit;
  EXPECT_THROW((void)jit.compile(source_of("wanted", "define void @other() {\n  ret void\n}\n")), InternalError);
}

}  // namespace
}  // namespace sinter::test
