#include "tests/emulator/nvrtc.h"

#include <gtest/gtest.h>

#include "compiler/codegen/cuda.h"
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
  if (!nvrtc) GTEST_SKIP() << sources.size() << " kernels not compiled: no NVRTC under SINTER_LIBTORCH";
  for (const char* architecture : {"sm_80", "sm_90"}) EXPECT_EQ(nvrtc->compile(sources, architecture), "");
}

INSTANTIATE_TEST_SUITE_P(Dtypes, EveryText, testing::ValuesIn(kernel_dtypes()),
                         [](const auto& param) { return std::string(ir::name(param.param)); });

}  // namespace
}  // namespace sinter::test
