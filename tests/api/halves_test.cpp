#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "where.h"

/// Arithmetic of halves with numbers: under Numerics::eager to the bit what ATen computes, which rounds some numbers to
/// the half first and takes others at f32. Of whole vectors: its scalar code on the CPU, for the tail, rounds less.
namespace sinter::test {
namespace {

using at::Tensor;

struct Row {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> program;  ///< of two halves
};

const std::vector<Row>& rows() {
  static const std::vector<Row> rows = {
      {"add_number", [](const Tensor& x, const Tensor&) { return x + 0.1; }},
      {"mul_number", [](const Tensor& x, const Tensor&) { return x * 0.1; }},
      {"div_number", [](const Tensor& x, const Tensor&) { return x / 0.3; }},
      {"add_with_alpha", [](const Tensor& x, const Tensor& y) { return at::add(x, y, 0.1); }},
      {"sub_with_alpha", [](const Tensor& x, const Tensor& y) { return at::sub(x, y, 0.1); }},
      {"rsub_with_alpha", [](const Tensor& x, const Tensor& y) { return at::rsub(x, y, 0.1); }},
      {"add_number_with_alpha", [](const Tensor& x, const Tensor&) { return at::add(x, 0.7, 0.1); }},
      {"add_in_place", [](const Tensor& x, const Tensor&) { return x.clone().add_(0.1); }},
      {"mul_in_place", [](const Tensor& x, const Tensor&) { return x.clone().mul_(0.1); }},
      {"div_in_place", [](const Tensor& x, const Tensor&) { return x.clone().div_(0.3); }},
      {"add_in_place_with_alpha", [](const Tensor& x, const Tensor& y) { return x.clone().add_(y, 0.1); }},
      {"sub_in_place_with_alpha", [](const Tensor& x, const Tensor& y) { return x.clone().sub_(y, 0.1); }},
      {"add_scalar_tensor", [](const Tensor& x, const Tensor&) { return x + at::scalar_tensor(0.1, at::kFloat); }},
      {"mul_scalar_tensor", [](const Tensor& x, const Tensor&) { return x * at::scalar_tensor(1e5, at::kDouble); }},
      {"mul_scalar_tensor_first",
       [](const Tensor& x, const Tensor&) { return at::scalar_tensor(0.1, at::kFloat) * x; }},
      {"mul_whole_scalar_tensor",
       [](const Tensor& x, const Tensor&) { return x * at::scalar_tensor(70000, at::kLong); }},
      {"div_scalar_tensor", [](const Tensor& x, const Tensor&) { return x / at::scalar_tensor(7e4, at::kFloat); }},
      {"scale_of_a_maximum", [](const Tensor& x, const Tensor& y) { return x * (y.to(at::kFloat).max() * 1e6); }},
      {"floor_by_number", [](const Tensor& x, const Tensor&) { return at::div(x * 8, 0.1, "floor"); }},
      {"floor_by_scalar_tensor",
       [](const Tensor& x, const Tensor&) { return at::floor_divide(x * 8, at::scalar_tensor(0.1, at::kFloat)); }},
      {"addcmul_with_value", [](const Tensor& x, const Tensor& y) { return at::addcmul(x, x, y, 0.1); }},
      {"lerp_number", [](const Tensor& x, const Tensor& y) { return at::lerp(x, y, 0.1); }},
      {"clamp_numbers", [](const Tensor& x, const Tensor&) { return at::clamp(x, -0.3, 0.7); }},
      {"greater_than_number", [](const Tensor& x, const Tensor&) { return x > 0.1; }},
  };
  return rows;
}

class Halves : public OnDevice {
 protected:
  [[nodiscard]] Options options() const {
    return unlimited({.mode = GetParam().mode, .numerics = Numerics::eager, .strict = true});
  }
  [[nodiscard]] Tensor random(at::ScalarType dtype) {
    return at::randn({2048}, generator_, at::kFloat).to(at::TensorOptions(GetParam().device).dtype(dtype));
  }
  /// On CUDA ATen multiplies by the reciprocal of a number, which may be a rounding apart, and for a few elements that
  /// decides how a half is rounded.
  void expect_same(const Tensor& compiled, const Tensor& eager, const std::string& where) const {
    const auto differing = at::ne(compiled, eager).sum().item<int64_t>();
    EXPECT_LE(differing, GetParam().device == at::kCUDA ? 8 : 0) << where << ": so many of 2048 differ";
  }

 private:
  const c10::NoGradGuard no_grad_;
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(5);
};

TEST_P(Halves, are_those_of_eager_to_the_bit) {
  for (const Row& row : rows()) {
    for (const auto dtype : {at::kHalf, at::kBFloat16}) {
      auto fast = compile(row.program, options());
      for (int call = 0; call < 3; ++call) {
        const Tensor x = random(dtype), y = random(dtype);
        expect_same(fast(x, y), row.program(x, y), row.name);
      }
      EXPECT_GT(fast.stats().replayed, 0) << row.name;
    }
  }
}

/// Numbers that differ from call to call are operands of the kernel, rounded as those that do not.
TEST_P(Halves, take_numbers_that_change) {
  using Program = std::function<Tensor(const Tensor&, double)>;
  const std::vector<Program> programs = {
      [](const Tensor& x, double s) { return (x + s) * s; },
      [](const Tensor& x, double s) { return at::add(x, x, s * 0.7) - s; },
      [](const Tensor& x, double s) { return at::rsub(x, s).clamp(-s, s * 0.3); },
      [](const Tensor& x, double s) { return at::addcmul(x, x, x, s) / (s * 30000); },
      [](const Tensor& x, double s) { return x.masked_fill(x > s * 0.3, s); },
      [](const Tensor& x, double s) { return x.clone().mul_(s).fill_(s) + x; }};
  for (size_t i = 0; i < programs.size(); ++i) {
    for (const auto dtype : {at::kHalf, at::kBFloat16}) {
      auto fast = compile(programs[i], options());
      for (int call = 0; call < 6; ++call) {
        const Tensor x = random(dtype);
        const double s = 1.1 + 0.37 * call;
        expect_same(fast(x, s), programs[i](x, s), "program " + std::to_string(i));
      }
      EXPECT_GE(fast.stats().replayed, 3) << "program " << i << "\n" << fast.report();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Places, Halves, everywhere(), name_of);

/// What is no zero in f64 may be one in the dtype that tensors are promoted to.
TEST_F(Api, operands_are_converted_before_they_become_bools) {
  const auto program = [](const Tensor& x, const Tensor& few) {
    return at::logical_and(x + 1, few).to(at::kFloat) + x;
  };
  auto fast = compile(program, unlimited({.strict = true}));
  for (int call = 0; call < 4; ++call) {
    const Tensor x = at::rand({64}), few = at::scalar_tensor(call % 2 == 0 ? 1e-46 : 1e-3, at::kDouble);
    EXPECT_TRUE(at::equal(fast(x, few), program(x, few))) << call;
  }
}

/// Some of ATen's kernels refuse numbers beyond the dtype, others take them for infinite.
TEST_F(Api, numbers_beyond_the_dtype_are_those_of_eager) {
  using Program = std::function<Tensor(const Tensor&, double)>;
  const std::vector<Program> programs = {[](const Tensor& x, double s) { return at::add(x, x, s) * 0.5; },
                                         [](const Tensor& x, double s) { return at::addcmul(x, x, x, s) * 0.5; },
                                         [](const Tensor& x, double s) { return (x < s).logical_or(x > -s); },
                                         [](const Tensor& x, double s) { return x + s; },
                                         [](const Tensor& x, double s) { return x * s * 0.5; }};
  const auto outcome = [](const auto& program, const Tensor& x, double s) -> std::optional<Tensor> {
    try {
      return program(x, s);
    } catch (const std::exception&) {
      return std::nullopt;
    }
  };
  for (size_t i = 0; i < programs.size(); ++i) {
    for (const auto& [dtype, beyond] : {std::pair(at::kFloat, 1e39), std::pair(at::kHalf, 7e4)}) {
      auto fast = compile(programs[i], unlimited({.numerics = Numerics::eager, .strict = true}));
      for (const double s : {1.0, 1.5, 2.0, 2.5, beyond, 3.0, -beyond, beyond, 3.5}) {
        const Tensor x = at::arange(1, 33).to(dtype);
        const auto compiled = outcome(fast, x, s), eager = outcome(programs[i], x, s);
        ASSERT_EQ(compiled.has_value(), eager.has_value()) << "program " << i << ", " << dtype << " with " << s;
        if (!eager) continue;
        EXPECT_TRUE(at::equal(*compiled, *eager)) << "program " << i << ", " << dtype << " with " << s;
      }
      EXPECT_GE(fast.stats().replayed, 2) << "program " << i << "\n" << fast.report();
    }
  }
}

}  // namespace
}  // namespace sinter::test
