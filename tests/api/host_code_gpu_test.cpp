#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include "api_test.h"

namespace sinter::test {
namespace {

using at::Tensor;

/// Host code between operators and copies to the host, launched directly and from recorded graphs.
class HostCodeGpu : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
  }
  [[nodiscard]] static Tensor full(int64_t size, double value) {
    return at::full({size}, value, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  }
  [[nodiscard]] static Options options() { return unlimited({.mode = GetParam(), .strict = true}); }

 private:
  c10::NoGradGuard no_grad_;
};

INSTANTIATE_TEST_SUITE_P(Modes, HostCodeGpu, ::testing::Values(Mode::Default, Mode::ReduceOverhead),
                         [](const auto& mode) {
                           return std::string(mode.param == Mode::Default ? "default" : "reduce_overhead");
                         });

TEST_P(HostCodeGpu, effects_see_the_tensors_of_their_call_in_order) {
  std::vector<float> log, expected;
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor y = x * 3 + 1;
        log.push_back(y.sum().item<float>());
        const Tensor z = y.relu() * 2;
        log.push_back(z[0].item<float>());
        return z + 1;
      },
      options());
  for (int call = 0; call < 20; ++call) {
    const Tensor x = full(8, call - 4);
    const Tensor y = x * 3 + 1;
    const Tensor z = y.relu() * 2;
    expected.push_back(y.sum().item<float>());
    expected.push_back(z[0].item<float>());
    ASSERT_TRUE(same(fast(x), z + 1)) << call;
    ASSERT_EQ(log, expected) << call;
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 15) << fast.report();
}

TEST_P(HostCodeGpu, tensors_made_from_nothing_count_their_writes_as_eager) {
  const std::vector<std::function<Tensor(const Tensor&)>> makers{
      [](const Tensor& x) { return at::arange(x.size(0), x.options()); },
      [](const Tensor& x) { return at::linspace(0, 1, 5, x.options()); },
      [](const Tensor& x) { return at::full({3}, 2.5, x.options()); },
      [](const Tensor& x) { return at::zeros({3}, x.options()); },
      [](const Tensor& x) { return at::randn({3}, x.options()); },
      [](const Tensor& x) { return at::eye(3, x.options()); },
      [](const Tensor& x) { return at::hann_window(8, x.options()); },
      [](const Tensor& x) { return at::zeros_like(x); },
      [](const Tensor& x) { return at::full_like(x, 3); },
  };
  for (size_t i = 0; i < makers.size(); ++i) {
    Tensor held;
    auto fast = compile(
        [&](const Tensor& x) {
          held = makers[i](x);
          return x + 1;
        },
        options());
    for (int call = 0; call < 6; ++call) {
      const Tensor x = full(4, call);
      ASSERT_TRUE(same(fast(x), x + 1)) << i;
      ASSERT_EQ(held._version(), makers[i](x)._version()) << "maker " << i << ", call " << call;
    }
    EXPECT_GE(fast.stats().replayed, 4) << fast.report();
  }
}

TEST_P(HostCodeGpu, numbers_of_the_host_are_operands) {
  int steps = 0;
  auto fast = compile([&](const Tensor& x) { return x * (0.5 * ++steps) - 1; }, options());
  for (int call = 1; call <= 20; ++call) {
    ASSERT_TRUE(same(fast(full(8, 3)), full(8, 3) * (0.5 * call) - 1)) << call << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 14) << fast.report();
}

TEST_P(HostCodeGpu, an_exception_comes_after_the_writes_before_it) {
  const auto program = [](Tensor& x) {
    x.add_(1);
    if (x[0].item<float>() > 5) throw std::out_of_range("above five");
    return x.mul_(2) + 1;
  };
  auto fast = compile(program, options());
  Tensor compiled = full(8, 0), eager = full(8, 0);
  for (int call = 0; call < 21; ++call) {
    compiled.fill_(call % 7);
    eager.fill_(call % 7);
    if (call % 7 >= 5) {
      EXPECT_THROW(fast(compiled), std::out_of_range) << call;
      EXPECT_THROW(program(eager), std::out_of_range);
    } else {
      ASSERT_TRUE(same(fast(compiled), program(eager))) << call;
    }
    ASSERT_TRUE(same(compiled, eager)) << call;
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_P(HostCodeGpu, reads_on_the_callers_stream) {
  double total = 0;
  auto fast = compile(
      [&](const Tensor& x) {
        total += (x * 2).sum().item<double>();
        return x + 1;
      },
      options());
  const auto side = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(side);
  for (int call = 0; call < 8; ++call) fast(full(1 << 20, 1));
  EXPECT_EQ(total, 8.0 * (1 << 21));
}

TEST_P(HostCodeGpu, a_copy_to_the_host_is_returned) {
  const auto program = [](const Tensor& x) { return std::vector<Tensor>{(x * 2).cpu(), (x + 1).to(at::kDouble), x}; };
  auto fast = compile(program, options());
  for (int call = 0; call < 9; ++call) {
    const Tensor x = full(8, call);
    const auto found = fast(x);
    const auto expected = program(x);
    for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(same(found[i], expected[i])) << call << " " << i;
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 5) << fast.report();
}

TEST_P(HostCodeGpu, copies_to_the_host_are_kept_by_their_callers) {
  auto fast = compile([](const Tensor& x) { return (x * 2 + 1).to(at::kCPU, at::kDouble); }, options());
  std::vector<Tensor> kept;
  for (int call = 0; call < 12; ++call) kept.push_back(fast(full(8, call)));
  for (int call = 0; call < 12; ++call) {
    ASSERT_TRUE(same(kept[static_cast<size_t>(call)], at::full({8}, 2.0 * call + 1, at::kDouble))) << call;
  }
}

TEST_P(HostCodeGpu, a_copy_to_the_host_is_computed_with_and_goes_back) {
  const auto program = [](const Tensor& x) {
    const Tensor host_sum = (x * 2).cpu().sum();
    const bool large = host_sum.item<float>() > 50;
    const Tensor back = host_sum.to(x.device());
    return large ? x + back : x - back;
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 16; ++call) {
    const Tensor x = full(8, call % 4 + 1);
    ASSERT_TRUE(same(fast(x), program(x))) << call << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_P(HostCodeGpu, a_copy_that_is_written_is_the_calls_own) {
  const auto program = [](const Tensor& x) {
    Tensor copy = (x + 1).cpu();
    copy.mul_(3);
    return copy.view({2, -1});
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 9; ++call) ASSERT_TRUE(same(fast(full(8, call)), program(full(8, call)))) << call;
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_P(HostCodeGpu, a_copy_is_there_for_the_program_to_look_at) {
  const auto program = [](const Tensor& x) {
    const Tensor copy = x.to(at::kDouble).cpu();
    return x * copy.const_data_ptr<double>()[0];
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 6; ++call) ASSERT_TRUE(same(fast(full(8, call)), program(full(8, call)))) << call;
}

TEST_P(HostCodeGpu, what_is_made_of_a_copy_is_there_where_it_is_asked_for) {
  const auto program = [](const Tensor& x) {
    const Tensor copy = x.cpu().to(at::kDouble);
    return x * materialize(copy).const_data_ptr<double>()[0];
  };
  auto fast = compile(program, options());
  for (int call = 0; call < 6; ++call) ASSERT_TRUE(same(fast(full(8, call)), program(full(8, call)))) << call;
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
}

}  // namespace
}  // namespace sinter::test
