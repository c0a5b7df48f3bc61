#include "runtime/nvrtc.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "compiler/support/errors.h"

namespace sinter::runtime {
namespace {

KernelSource source_of(const std::string& name, const std::string& body) {
  KernelSource source;
  source.name = name;
  source.comment = "stands for aten::gelu";
  source.text = "extern \"C\" __global__ void " + name + "(const float* x, float* y) { " + body + " }";
  return source;
}

TEST(Nvrtc, compiles_for_architectures_this_machine_need_not_have) {
  const KernelSource source = source_of("erf_kernel", "y[threadIdx.x] = erff(x[threadIdx.x]);");
  for (const int sm : {80, 90}) {
    const std::vector<char> cubin = nvrtc::compile(source, sm);
    ASSERT_GT(cubin.size(), 4U);
    EXPECT_EQ(std::string(cubin.data(), 4),
              "\x7f"
              "ELF");
  }
}

TEST(Nvrtc, saves_source_options_and_log_of_a_kernel_it_refuses) {
  const KernelSource source = source_of("broken_kernel", "y[0] = no_such_name;");
  try {
    (void)nvrtc::compile(source, 90);
    FAIL() << "it compiled";
  } catch (const InternalError& error) {
    EXPECT_EQ(error.where(), "nvrtc");
    EXPECT_NE(std::string(error.what()).find("no_such_name"), std::string::npos) << error.what();
    std::stringstream saved;
    saved << std::ifstream(error.artifact()).rdbuf();
    EXPECT_NE(saved.str().find("// stands for aten::gelu"), std::string::npos);
    EXPECT_NE(saved.str().find("--gpu-architecture=sm_90"), std::string::npos);
    EXPECT_NE(saved.str().find(source.text), std::string::npos);
    EXPECT_NE(saved.str().find("is undefined"), std::string::npos);
  }
}

TEST(Nvrtc, is_told_apart_by_its_build_id_before_and_after_it_is_loaded) {
  const std::string before = nvrtc::identity();
  EXPECT_NE(before.find(" build "), std::string::npos) << before;
  EXPECT_FALSE(nvrtc::version().empty());
  EXPECT_EQ(nvrtc::identity(), before);
}

TEST(Nvrtc, can_be_warmed_up_any_number_of_times) {
  nvrtc::prewarm(90);
  nvrtc::prewarm(90);
  EXPECT_FALSE(nvrtc::version().empty());
}

}  // namespace
}  // namespace sinter::runtime
