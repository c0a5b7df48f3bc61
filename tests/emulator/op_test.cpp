#include <gtest/gtest.h>

#include "tests/emulator/op_kernels.h"
#include "tests/llvm/kernels.h"

/// Every native row of the op table, and every cast, as CUDA text against the reference functions.
namespace sinter::test {
namespace {

class EveryOp : public testing::TestWithParam<ir::DType> {};

TEST_P(EveryOp, agrees_with_its_reference_in_every_layout) { EXPECT_EQ(compare_all(op_cases(GetParam())), ""); }

TEST_P(EveryOp, casts_to_every_dtype_as_the_reference_does) {
  std::vector<Case> cases;
  for (const ir::DType to : kernel_dtypes()) {
    if (to == GetParam()) continue;
    KernelBuilder builder("fused_cast", {517});
    auto value = builder.input(GetParam(), {1});
    const bool through_float = ir::is_half(GetParam()) || ir::is_half(to);
    if (through_float && GetParam() != ir::DType::f32) value = builder.cast(value, ir::DType::f32);
    builder.output(to, builder.dtype(value) == to ? value : builder.cast(value, to), {1});
    // A float beyond an integer's range has no defined conversion.
    const bool may_overflow = ir::is_float(GetParam()) && ir::is_int(to);
    cases.push_back({.name = "cast to " + std::string(ir::name(to)),
                     .kernel = builder.kernel(),
                     .tolerance = {},
                     .special = !may_overflow});
  }
  EXPECT_EQ(compare_all(cases), "");
}

INSTANTIATE_TEST_SUITE_P(Dtypes, EveryOp, testing::ValuesIn(kernel_dtypes()),
                         [](const auto& param) { return std::string(ir::name(param.param)); });

}  // namespace
}  // namespace sinter::test
