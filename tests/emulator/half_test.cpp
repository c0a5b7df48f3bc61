#include <gtest/gtest.h>

#include <cmath>

#include "compiler/codegen/cuda.h"
#include "compiler/codegen/cuda_precision.h"
#include "tests/emulator/compare.h"
#include "tests/llvm/kernels.h"

/// The functions of cuda_half.cuh over every f16.
namespace sinter::test {
namespace {

using ir::DType;
using kernel::Kernel;
using kernel::Slot;

constexpr int64_t all_halves = 65536;

struct Function {
  std::string name;
  Slot (*build)(KernelBuilder&, Slot);
  double (*exact)(double);
};

Slot number(KernelBuilder& b, double value) { return b.number(value, DType::f32); }
Slot unary(KernelBuilder& b, std::string_view op, Slot x) { return b.op(op, {x}, DType::f32); }
Slot binary(KernelBuilder& b, std::string_view op, Slot x, Slot y) { return b.op(op, {x, y}, DType::f32); }

Slot gelu_of(KernelBuilder& b, Slot x) {
  const Slot erf = unary(b, "erf", binary(b, "mul", x, number(b, M_SQRT1_2)));
  return binary(b, "mul", binary(b, "mul", x, number(b, 0.5)), binary(b, "add", erf, number(b, 1)));
}
Slot sigmoid_of(KernelBuilder& b, Slot x) {
  const Slot exp = unary(b, "exp", unary(b, "neg", x));
  return binary(b, "div", number(b, 1), binary(b, "add", number(b, 1), exp));
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all{
      {"erf", [](KernelBuilder& b, Slot x) { return unary(b, "erf", x); }, [](double x) { return std::erf(x); }},
      {"exp", [](KernelBuilder& b, Slot x) { return unary(b, "exp", x); }, [](double x) { return std::exp(x); }},
      {"sqrt", [](KernelBuilder& b, Slot x) { return unary(b, "sqrt", x); }, [](double x) { return std::sqrt(x); }},
      {"tanh", [](KernelBuilder& b, Slot x) { return unary(b, "tanh", x); }, [](double x) { return std::tanh(x); }},
      {"sigmoid", sigmoid_of, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"gelu", gelu_of, [](double x) { return x * 0.5 * std::erfc(-x * M_SQRT1_2); }},
  };
  return all;
}

/// y = function(x), from f16 to f16.
Kernel kernel_of(const Function& function) {
  KernelBuilder b("fused_" + function.name, {all_halves});
  const Slot x = b.cast(b.input(DType::f16, {1}), DType::f32);
  b.output(DType::f16, b.cast(function.build(b, x), DType::f16), {1});
  return b.kernel();
}

double half_ulp(double value) { return std::ldexp(0.5, std::max(std::ilogb(value), -14) - 10); }

/// The error of a rounded result is at most half an ulp of rounding plus a twentieth of the function's own.
TEST(HalfAccuracy, every_f16_is_within_half_an_ulp_and_a_twentieth) {
  std::vector<KernelSource> sources;
  for (const auto& function : functions())
    sources.push_back(codegen::generate_cuda(kernel_of(function), test_device()));
  const Emulator emulator(sources);
  for (size_t f = 0; f < functions().size(); ++f) {
    SCOPED_TRACE(functions()[f].name);
    EXPECT_NE(sources[f].text.find("half_"), std::string::npos);
    std::vector<Buffer> params{Buffer(DType::f16, all_halves), Buffer(DType::f16, all_halves)};
    for (uint32_t bits = 0; bits < all_halves; ++bits)
      static_cast<uint16_t*>(params[0].data())[bits] = static_cast<uint16_t>(bits);
    run_emulated(emulator, f, kernel_of(functions()[f]), sources[f], params);
    for (int64_t i = 0; i < all_halves; ++i) {
      const double x = std::get<double>(params[0].get(i));
      const double want = functions()[f].exact(x);
      const double got = std::get<double>(params[1].get(i));
      if (std::isnan(want) || std::isinf(x)) {
        ASSERT_TRUE(!std::isnan(x) || std::isnan(got)) << x;
        continue;
      }
      if (std::fabs(want) >= 65504) continue;
      ASSERT_LE(std::fabs(got - want), want == 0 ? 0 : half_ulp(want) * 1.05) << "at " << x;
    }
  }
}

TEST(HalfAccuracy, infinities_give_the_limits) {
  std::vector<KernelSource> sources;
  for (const auto& function : functions())
    sources.push_back(codegen::generate_cuda(kernel_of(function), test_device()));
  const Emulator emulator(sources);
  for (size_t f = 0; f < functions().size(); ++f) {
    std::vector<Buffer> params{Buffer(DType::f16, all_halves), Buffer(DType::f16, all_halves)};
    params[0].set(0, INFINITY);
    params[0].set(1, -INFINITY);
    run_emulated(emulator, f, kernel_of(functions()[f]), sources[f], params);
    for (const int64_t i : {0, 1}) {
      const double want = functions()[f].exact(i == 0 ? INFINITY : -INFINITY);
      const double got = std::get<double>(params[1].get(i));
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << functions()[f].name << ": " << got;
    }
  }
}

/// Of exp, and of what it was rounded to: whether half accuracy is enough, if `last` of it is stored as f32.
std::vector<bool> accuracy_before(std::string_view last) {
  KernelBuilder b("fused_exp", {64});
  const Slot exp = unary(b, "exp", b.cast(b.input(DType::f16, {1}), DType::f32));
  const Slot rounded = b.cast(b.cast(exp, DType::f16), DType::f32);
  b.output(DType::f32, unary(b, last, rounded), {1});
  const std::vector<bool> half = codegen::half_accurate_slots(b.kernel());
  return {half[exp], half[rounded]};
}

/// What was rounded to a half has its error whatever follows, unless that jumps.
TEST(HalfAccuracy, ends_where_a_value_is_rounded) {
  EXPECT_EQ(accuracy_before("exp"), (std::vector{true, false}));
  EXPECT_EQ(accuracy_before("floor"), (std::vector{false, false}));
}

}  // namespace
}  // namespace sinter::test
