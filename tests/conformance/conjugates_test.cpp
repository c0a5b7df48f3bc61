#include <ATen/ops/_neg_view.h>
#include <ATen/ops/fft_irfft.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/real.h>
#include <torch/library.h>

#include <limits>

#include "tests/api/where.h"

/// Tensors that read their memory otherwise (the conjugate and the negative bit), and results that LibTorch fills part
/// by part.
namespace sinter::test {
namespace {

using at::Tensor;

TORCH_LIBRARY(sinter_bits_test, library) {
  library.def("conjugated(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  library.impl("conjugated", c10::DispatchKey::CompositeExplicitAutograd,
               [](const Tensor& x) { return (x * 2).conj(); });
}

class Bits : public OnDevice {
 protected:
  [[nodiscard]] Tensor complex(double factor) const {
    return (at::randn({4, 3}, at::kComplexFloat) * factor).to(GetParam().device);
  }

  /// The program compiled, on several tensors: eager's results, with the bits that they have in eager.
  template <class Program>
  void expect_eagers(const Program& program, const char* what) {
    const c10::NoGradGuard no_grad;
    const auto fast = compile(
        program, {.mode = GetParam().mode, .compile_budget = std::numeric_limits<double>::infinity(), .strict = true});
    for (int call = 0; call < 7; ++call) {
      const Tensor x = complex(call + 1);
      const Tensor compiled = fast(x);
      const Tensor eager = program(x);
      EXPECT_EQ(compiled.is_conj(), eager.is_conj()) << what;
      EXPECT_EQ(compiled.is_neg(), eager.is_neg()) << what;
      EXPECT_TRUE(same(compiled.resolve_conj().resolve_neg(), eager.resolve_conj().resolve_neg()))
          << what << ", call " << call;
    }
  }
};

TEST_P(Bits, of_a_conjugate_made_inside_are_seen_by_what_reads_it) {
  expect_eagers([](const Tensor& x) { return x.conj() * x; }, "product");
  expect_eagers([](const Tensor& x) { return (x * 2).conj().t().contiguous(); }, "copy");
  expect_eagers([](const Tensor& x) { return at::matmul(x.conj().t(), x); }, "matmul reads the bit itself");
  expect_eagers([](const Tensor& x) { return x.conj().conj() + 1; }, "twice");
}

TEST_P(Bits, of_a_negative_are_not_overlooked_by_kernels) {
  expect_eagers([](const Tensor& x) { return at::imag(x.conj()).clone(); }, "clone");
  expect_eagers([](const Tensor& x) { return at::imag((x + 1).conj()).mul(2).exp(); }, "pointwise");
  expect_eagers([](const Tensor& x) { return at::_neg_view(at::real(x * 2)) + 1; }, "sum");
  expect_eagers(
      [](const Tensor& x) {
        Tensor y = at::ones({4, 3}, x.options().dtype(at::kFloat));
        y.copy_(at::imag(x.conj()));
        return y * 3;
      },
      "copied into another");
}

TEST_P(Bits, come_out_with_results) {
  expect_eagers([](const Tensor& x) { return x.conj(); }, "of an argument");
  expect_eagers([](const Tensor& x) { return (x * 2).conj(); }, "of an intermediate");
  expect_eagers([](const Tensor& x) { return (x * 2).conj().slice(0, 1).t(); }, "a view of one");
  expect_eagers([](const Tensor& x) { return at::_neg_view(at::real(x * 2)); }, "a negative");
}

/// LibTorch's decompositions of complex matrices do so on a GPU.
TEST_P(Bits, of_new_memory_that_an_operator_returns_are_seen) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("sinter_bits_test::conjugated", "");
  const auto conjugated = [typed = op.typed<Tensor(const Tensor&)>()](const Tensor& x) { return typed.call(x); };
  expect_eagers([&](const Tensor& x) { return conjugated(x); }, "itself");
  expect_eagers([&](const Tensor& x) { return conjugated(x) + x; }, "read by a kernel");
  expect_eagers([&](const Tensor& x) { return conjugated(x).t().conj(); }, "looked at once more");
  expect_eagers([&](const Tensor& x) { return at::real(conjugated(x)) * 2 + at::imag(conjugated(x)); }, "parts");
  expect_eagers([&](const Tensor& x) { return at::matmul(conjugated(x), x.t()); }, "read by a library");
  expect_eagers(
      [](const Tensor& x) {
        const auto [u, s, v] = at::linalg_svd(x, /*full_matrices=*/false);
        return at::matmul(u * s, v) + at::matmul(v, v.mH()).sum();
      },
      "vectors");
}

TEST_P(Bits, of_a_view_follow_writes_to_what_it_looks_at) {
  expect_eagers(
      [](const Tensor& x) {
        Tensor y = x * 2;
        const Tensor seen = y.conj();
        y.add_(x);
        return seen * 1;
      },
      "written after the view was made");
}

TEST_P(Bits, of_what_is_written_run_as_eager_runs_them) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    Tensor y = x * 2;
    y.conj().mul_(x);
    return y;
  };
  const auto fast = compile(
      program, {.mode = GetParam().mode, .compile_budget = std::numeric_limits<double>::infinity(), .strict = true});
  for (int call = 0; call < 3; ++call) {
    const Tensor x = complex(call + 1);
    EXPECT_TRUE(same(fast(x), program(x)));
  }
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::unsupported_op);
}

TEST_P(Bits, of_spectra_are_seen) {
  expect_eagers([](const Tensor& x) { return at::fft_irfft(at::fft_rfft(at::real(x)).conj()); }, "fft");
}

TEST_P(Bits, circular_padding_compiles) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) { return at::pad(x * 2, {1, 2, 2, 1}, "circular") + 1; };
  const auto fast = compile(
      program, {.mode = GetParam().mode, .compile_budget = std::numeric_limits<double>::infinity(), .strict = true});
  for (int call = 0; call < 7; ++call) {
    const Tensor x = at::randn({1, 2, 4, 5}).to(GetParam().device);
    EXPECT_TRUE(same(fast(x), program(x))) << "call " << call;
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(replays(fast.report()), 3) << fast.report();
}

constexpr Where kCpu{"cpu", at::kCPU, Mode::Default};
constexpr Where kCuda{"cuda", at::kCUDA, Mode::Default};
constexpr Where kGraphs{"graphs", at::kCUDA, Mode::ReduceOverhead};

INSTANTIATE_TEST_SUITE_P(Cpu, Bits, ::testing::Values(kCpu), name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, Bits, ::testing::Values(kCuda, kGraphs), name_of);

}  // namespace
}  // namespace sinter::test
