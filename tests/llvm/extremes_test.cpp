#include <gtest/gtest.h>

#include <array>
#include <random>

#include "compiler/ir/op_types.h"
#include "tests/llvm/harness.h"
#include "tests/llvm/kernels.h"
#include "tests/llvm/values.h"

/// An extreme of an extreme and of something else of the same operands: LLVM 19's simplifications take any intrinsic
/// there for an extreme, and end the process where it is none.
namespace sinter::test {
namespace {

using ir::DType;
using kernel::Slot;

constexpr std::array extremes{"maximum", "minimum", "fmax", "fmin"};

struct Pair {
  const char* outer;
  const char* other;
};

kernel::Kernel extreme_of_shared_operands(const Pair& pair, DType dtype) {
  KernelBuilder b("fused_shared", {147});
  const Slot x = b.input(dtype, {1});
  const Slot y = b.input(dtype, {1});
  std::vector<Slot> operands{x, y};
  if (ir::row(ir::op_named(pair.other)).arity == 3) operands.push_back(b.number(0.25, dtype));
  const Slot other = b.op(pair.other, operands, dtype);
  const Slot inner = b.op(pair.outer, {y, x}, dtype);
  b.output(dtype, b.op(pair.outer, {other, inner}, dtype), {1});
  return b.kernel();
}

class SharedOperands : public testing::TestWithParam<Pair> {};

TEST_P(SharedOperands, of_an_extreme_agree_with_the_reference) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const kernel::Kernel kernel = extreme_of_shared_operands(GetParam(), dtype);
    std::vector<Buffer> params = make_params(kernel);
    std::mt19937_64 random(17);
    for (size_t p = 0; p < params.size(); ++p) fill(params[p], random, {.domain = ir::Domain::all_reals, .operand = p});
    for (const int width : host_widths()) {
      EXPECT_EQ(compare_with_reference(kernel, params, width, {.signed_zero = false}), "") << width;
    }
  }
}

std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const char* outer : extremes) {
    for (const char* other : {"copysign", "fma", "maximum", "minimum", "fmax", "fmin"}) all.push_back({outer, other});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Extremes, SharedOperands, testing::ValuesIn(pairs()), [](const auto& instance) {
  return std::string(instance.param.outer) + "_and_" + instance.param.other;
});

}  // namespace
}  // namespace sinter::test
