#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "where.h"

/// Elements at places that other tensors tell, which kernels for CUDA read by themselves, beside eager.
namespace sinter::test {
namespace {

using at::Tensor;

class Gathers : public OnDevice {
 protected:
  [[nodiscard]] Options options() const { return unlimited({.mode = GetParam().mode}); }
  [[nodiscard]] Tensor random(at::IntArrayRef sizes, at::ScalarType dtype) const {
    return at::randn(sizes, at::TensorOptions(GetParam().device)).to(dtype);
  }
  [[nodiscard]] Tensor places(at::IntArrayRef sizes, int64_t begin, int64_t end,
                              at::ScalarType dtype = at::kLong) const {
    return at::randint(begin, end, sizes, at::TensorOptions(GetParam().device).dtype(dtype));
  }
};

constexpr int64_t count = 50;

/// A table of 50 x 64, places [6, 20] in it, an image [6, 20, 64].
struct Program {
  const char* name;
  std::function<Tensor(const Tensor& table, const Tensor& places, const Tensor& x)> of;
  bool takes_ints = true;  ///< places of 32 bits, which ATen's gather refuses
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all{
      {"words", [](auto& t, auto& p, auto&) { return at::embedding(t, p); }},
      {"words normalised", [](auto& t, auto& p, auto& x) { return at::layer_norm(at::embedding(t, p) + x, {64}); }},
      {"words of halves of a table", [](auto& t, auto& p, auto&) { return at::embedding(t.slice(1, 32), p) * 2; }},
      {"rows", [](auto& t, auto& p, auto& x) { return t.index_select(0, p.flatten()).view({6, 20, 64}) - x; }},
      {"columns", [](auto& t, auto& p, auto&) { return t.t().index_select(1, p.select(0, 0)).softmax(0); }},
      {"an element each", [](auto& t, auto& p, auto&) { return t.gather(0, at::cat({p, p, p, p}, 1).slice(1, 0, 64)); },
       false},
      {"along rows", [](auto& t, auto& p, auto& x) { return x.select(1, 3).gather(1, p.slice(0, 0, 5)) + t.sum(); },
       false},
      {"indexed", [](auto& t, auto& p, auto& x) { return t.index({p - 25}) + x; }},
      {"indexed by two",
       [](auto& t, auto& p, auto& x) { return t.index({p, p.select(1, 0).unsqueeze(1)}) * x.select(2, 1); }},
      {"indexed around a dim",
       [](auto&, auto& p, auto& x) { return x.index({p.select(1, 0).remainder(6), {}, p.select(1, 1)}).relu(); }},
      {"what is computed", [](auto& t, auto& p, auto& x) { return at::embedding(at::gelu(t), p) + x; }},
      {"places of places",
       [](auto& t, auto& p, auto&) { return at::embedding(t, p.flatten().index_select(0, p.select(0, 0))); }},
      {"places from numbers",
       [](auto& t, auto&, auto& x) { return at::embedding(t, (x.select(2, 0).sigmoid() * 49).to(at::kLong)) + x; }},
      {"the winner's row", [](auto& t, auto&, auto& x) { return at::embedding(t, x.slice(2, 0, 50).argmax(2)) * x; }},
  };
  return all;
}

TEST_P(Gathers, give_eagers_results) {
  const FullPrecision exact;
  for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const auto integers : {at::kLong, at::kInt}) {
      for (const Program& program : programs()) {
        const Tensor table = random({count, 64}, dtype);
        const auto fast = compile([&](const Tensor& p, const Tensor& x) { return program.of(table, p, x); }, options());
        for (int call = 0; call < 4; ++call) {
          const Tensor p = places({6, 20}, 0, count, program.takes_ints ? integers : at::kLong);
          const Tensor x = random({6, 20, 64}, dtype);
          const double tolerance = dtype == at::kFloat ? 2e-5 : dtype == at::kHalf ? 4e-3 : 3e-2;
          const auto outcome = same(fast(p, x), program.of(table, p, x), tolerance);
          ASSERT_TRUE(outcome) << program.name << " " << dtype << ": " << outcome.message() << "\n" << fast.report();
        }
      }
    }
  }
}

/// A table that is written between calls, and in the call after it was read.
TEST_P(Gathers, read_what_lies_there_now) {
  Tensor table = random({count, 64}, at::kFloat);
  Tensor eager = table.clone();
  const auto step = [](Tensor& t, const Tensor& p) {
    const Tensor rows = at::embedding(t, p);
    t.mul_(0.5);
    return rows + at::embedding(t, p);
  };
  const auto fast = compile([&](const Tensor& p) { return step(table, p); }, options());
  for (int call = 0; call < 6; ++call) {
    const Tensor p = places({6, 20}, 0, count);
    const Tensor want = step(eager, p);
    ASSERT_TRUE(same(fast(p), want)) << fast.report();
    ASSERT_TRUE(same(table, eager)) << fast.report();
    table.add_(1);
    eager.add_(1);
  }
  EXPECT_GT(fast.stats().replayed, 0) << fast.report();
}

TEST_P(Gathers, have_gradients) {
  Tensor table = random({count, 64}, at::kFloat).requires_grad_();
  const auto loss = [&](const Tensor& p, const Tensor& x) {
    return (at::layer_norm(at::embedding(table, p), {64}) * x + table.index({p - 25}).tanh()).square().mean();
  };
  const auto gradient = [&](const Tensor& p, const Tensor& x) {
    table.mutable_grad() = Tensor();
    loss(p, x).backward();
    return table.grad().clone();
  };
  const auto fast = compile(gradient, options());
  for (int call = 0; call < 4; ++call) {
    const Tensor p = places({6, 20}, 0, count);
    const Tensor x = random({6, 20, 64}, at::kFloat);
    const Tensor got = fast(p, x);
    const auto outcome = same(got, gradient(p, x), 1e-5);
    ASSERT_TRUE(outcome) << outcome.message() << "\n" << fast.report();
  }
}

/// As many places as each call has.
TEST_P(Gathers, of_any_length) {
  const Tensor table = random({count, 64}, at::kHalf);
  const auto words = [&](const Tensor& p) { return at::embedding(table, p).softmax(-1); };
  const auto fast = compile(words, options());
  for (int64_t length = 3; length < 23; ++length) {
    const Tensor p = places({2, length}, 0, count);
    ASSERT_TRUE(same(fast(p), words(p), 4e-3)) << length << "\n" << fast.report();
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Gathers, everywhere(), name_of);

/// The device's work ends as eager's does: in a process of its own, for nothing works there afterwards.
TEST(GathersDeathTest, of_places_outside_end_the_work) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    const Tensor table = at::randn({count, 64}, at::kCUDA);
    const auto fast = compile([&](const Tensor& p) { return at::embedding(table, p) * 2; });
    for (int call = 0; call < 4; ++call) (void)fast(at::full({4}, count - 1, at::device(at::kCUDA).dtype(at::kLong)));
    (void)fast(at::full({4}, count, at::device(at::kCUDA).dtype(at::kLong)));
    at::zeros({1}, at::kCUDA).item();
  };
  EXPECT_EXIT(
      {
        try {
          run();
        } catch (const std::exception& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(3);
        }
      },
      ::testing::ExitedWithCode(3), "device-side assert");
}

}  // namespace
}  // namespace sinter::test
