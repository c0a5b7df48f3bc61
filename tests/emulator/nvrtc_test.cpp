#include "tests/emulator/nvrtc.h"

#include <gtest/gtest.h>

#include "compiler/codegen/cuda.h"
#include "tests/emulator/op_kernels.h"

namespace sinter::test {
namespace {

class EveryText : public testing::TestWithParam<ir::DType> {};

TEST_P(EveryText, compiles_for_sm_80_and_sm_90) {
  std::vector<KernelSource> sources;
  for (const Case& test : op_cases(GetParam())) sources.push_back(codegen::generate_cuda(test.kernel, test_device()));
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << sources.size() << " kernels not compiled: no NVRTC under SINTER_LIBTORCH";
  for (const char* architecture : {"sm_80", "sm_90"}) EXPECT_EQ(nvrtc->compile(sources, architecture), "");
}

INSTANTIATE_TEST_SUITE_P(Dtypes, EveryText, testing::ValuesIn(kernel_dtypes()),
                         [](const auto& param) { return std::string(ir::name(param.param)); });

}  // namespace
}  // namespace sinter::test
