#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <functional>
#include <string>
#include <vector>

#include "where.h"

/// Where compiled programs round: never less often than eager between operators of f32 and f64, and halves so that each
/// has one value.
namespace sinter::test {
namespace {

using at::Tensor;

class Rounding : public OnDevice {
 protected:
  [[nodiscard]] at::Device device() const { return GetParam().device; }
  [[nodiscard]] Options options(Numerics numerics = Numerics::fast) const {
    return unlimited({.mode = GetParam().mode, .numerics = numerics, .strict = true});
  }
  /// Normal numbers, the same on every device.
  [[nodiscard]] Tensor normal(at::IntArrayRef sizes, at::ScalarType dtype, uint64_t seed) const {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    return at::randn(sizes, generator, at::kDouble).to(dtype).to(device());
  }

 private:
  c10::NoGradGuard no_grad_;
};

/// Programs of three tensors.
struct Program {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)> run;
};

/// Elements of a replayed call that are not eager's, over some calls.
int64_t others_than_eager(const Program& program, const Options& options,
                          const std::function<std::vector<Tensor>(uint64_t)>& arguments) {
  auto fast = compile(program.run, options);
  int64_t differing = 0;
  for (uint64_t call = 0; call < 4; ++call) {
    const auto args = arguments(call);
    const Tensor compiled = fast(args[0], args[1], args[2]);
    const Tensor eager = program.run(args[0], args[1], args[2]);
    differing += at::ne(compiled, eager).sum().item<int64_t>();
  }
  EXPECT_GT(fast.stats().replayed, 0) << fast.report();
  return differing;
}

TEST_P(Rounding, of_equal_products_leaves_no_difference) {
  const auto norm = [](const Tensor& a, const Tensor& b) { return (a * a - b * b).sqrt(); };
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const auto numerics : {Numerics::fast, Numerics::eager}) {
      auto fast = compile(norm, options(numerics));
      for (uint64_t call = 0; call < 3; ++call) {
        const Tensor a = normal({4099}, dtype, call);
        EXPECT_TRUE(at::equal(fast(a, a.clone()), at::zeros_like(a))) << dtype << " call " << call;
      }
      EXPECT_GT(fast.stats().replayed, 0) << fast.report();
    }
  }
}

TEST_P(Rounding, of_one_operator_is_that_of_eager_to_the_bit) {
  const std::vector<Program> programs{
      {"add", [](const Tensor& x, const Tensor& y, const Tensor&) { return at::add(x, y, 0.1); }},
      {"sub", [](const Tensor& x, const Tensor& y, const Tensor&) { return at::sub(x, y, 0.1); }},
      {"rsub", [](const Tensor& x, const Tensor& y, const Tensor&) { return at::rsub(x, y, 0.1); }},
      {"add_number", [](const Tensor& x, const Tensor&, const Tensor&) { return at::add(x, 0.7, 0.1); }},
      {"addcmul", [](const Tensor& x, const Tensor& y, const Tensor& z) { return at::addcmul(x, y, z); }},
      {"addcmul_value", [](const Tensor& x, const Tensor& y, const Tensor& z) { return at::addcmul(x, y, z, 0.1); }},
      {"addcdiv", [](const Tensor& x, const Tensor& y, const Tensor& z) { return at::addcdiv(x, y, z); }},
      {"addcdiv_value", [](const Tensor& x, const Tensor& y, const Tensor& z) { return at::addcdiv(x, y, z, 0.1); }},
      {"lerp", [](const Tensor& x, const Tensor& y, const Tensor& z) { return at::lerp(x, y, z); }},
      {"lerp_near", [](const Tensor& x, const Tensor& y, const Tensor&) { return at::lerp(x, y, 0.3); }},
      {"lerp_far", [](const Tensor& x, const Tensor& y, const Tensor&) { return at::lerp(x, y, 0.8); }},
      {"sigmoid_backward", [](const Tensor& x, const Tensor& y, const Tensor&) { return at::sigmoid_backward(x, y); }},
      {"tanh_backward", [](const Tensor& x, const Tensor& y, const Tensor&) { return at::tanh_backward(x, y); }},
      {"threshold_backward",
       [](const Tensor& x, const Tensor& y, const Tensor&) { return at::threshold_backward(x, y, 0.1); }},
      {"operators_in_a_row", [](const Tensor& x, const Tensor& y, const Tensor& z) { return x * y + z * x - y * z; }},
  };
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const auto arguments = [&](uint64_t call) {
      return std::vector{normal({4099}, dtype, call), normal({4099}, dtype, call + 8),
                         normal({4099}, dtype, call + 16)};
    };
    for (const Program& program : programs)
      EXPECT_EQ(others_than_eager(program, options(), arguments), 0) << program.name << " " << dtype;
  }
}

/// The largest distance to the same layer in double.
double error_of(const Tensor& found, const Tensor& exact) {
  return (found.to(at::kDouble) - exact).abs().max().item<double>();
}

TEST_P(Rounding, of_batch_norm_far_from_zero_is_as_good_as_eagers) {
  const auto formats = {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast};
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    for (const auto format : formats) {
      for (const bool freeze : {false, true}) {
        const Tensor mean = normal({16}, dtype, 1) + 1e4, variance = normal({16}, dtype, 2).abs() + 0.5;
        const Tensor weight = normal({16}, dtype, 3), bias = normal({16}, dtype, 4);
        const auto layer = [&](const Tensor& x) {
          return at::batch_norm(x, weight, bias, mean, variance, /*training=*/false, 0.1, 1e-5, /*cudnn_enabled=*/true);
        };
        auto frozen_or_not = options();
        frozen_or_not.freeze = freeze;
        auto fast = compile(layer, frozen_or_not);
        const Tensor x = (normal({4, 16, 31, 17}, dtype, 5) + 1e4).contiguous(format);
        for (int call = 0; call < 2; ++call) static_cast<void>(fast(x));
        const Tensor compiled = fast(x), eager = layer(x);
        ASSERT_GT(fast.stats().replayed, 0) << fast.report();
        const auto channel = [](const Tensor& t) { return t.to(at::kDouble).view({16, 1, 1}); };
        const Tensor exact =
            (x.to(at::kDouble) - channel(mean)) / (channel(variance) + 1e-5).sqrt() * channel(weight) + channel(bias);
        SCOPED_TRACE(::testing::Message()
                     << dtype << (freeze ? " frozen" : "") << ", format " << static_cast<int>(format));
        if (device().is_cpu()) {
          EXPECT_TRUE(at::equal(compiled, eager));
        } else {
          EXPECT_LE(error_of(compiled, exact), dtype == at::kFloat ? 1e-5 : 2e-14);
        }
        EXPECT_LE(error_of(compiled, exact), 4 * error_of(eager, exact) + 1e-15);
      }
    }
  }
}

TEST_P(Rounding, of_a_half_is_what_every_decision_sees) {
  const std::vector<Program> programs{
      {"greater_than_a_view_of_itself",
       [](const Tensor& x, const Tensor&, const Tensor&) {
         const Tensor y = x * 0.3;
         return at::gt(y.unsqueeze(0).expand({2, 4096}), y);
       }},
      {"greater_than_itself_continued",
       [](const Tensor& x, const Tensor& y, const Tensor&) {
         const Tensor sum = x * 0.3 + y;
         return at::gt(sum * 2 + 1, (sum * 2).view({64, 64}).view({4096}) + 1);
       }},
      {"floor", [](const Tensor& x, const Tensor& y, const Tensor&) { return (x * 0.3 + y).floor(); }},
      {"integer", [](const Tensor& x, const Tensor& y, const Tensor&) { return (x * 3.3 + y).to(at::kInt); }},
      {"sign", [](const Tensor& x, const Tensor& y, const Tensor&) { return at::sign(x * 0.3 - y * 0.3); }},
      {"remainder", [](const Tensor& x, const Tensor& y, const Tensor&) { return at::fmod(x * 3.3 + y, 1.0); }},
      {"stored_as_f32", [](const Tensor& x, const Tensor&, const Tensor&) { return (x * 3.3).to(at::kFloat); }},
      {"two_kernels",
       [](const Tensor& x, const Tensor& y, const Tensor& z) {
         const Tensor row = z.slice(0, 0, 8) * 0.3;  // broadcast: each kernel may compute it
         const Tensor left = at::gt(x.view({512, 8}), row).to(at::kHalf);
         const Tensor right = y.view({512, 8}).slice(0, 0, 256) - row;
         return at::cat({left, right}).to(at::kFloat);
       }},
  };
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    const auto arguments = [&](uint64_t call) {
      return std::vector{normal({4096}, dtype, call), normal({4096}, dtype, call + 8),
                         normal({4096}, dtype, call + 16)};
    };
    for (const Program& program : programs)
      EXPECT_EQ(others_than_eager(program, options(), arguments), 0) << program.name << " " << dtype;
  }
}

INSTANTIATE_TEST_SUITE_P(Where, Rounding, everywhere(), name_of);

}  // namespace
}  // namespace sinter::test
