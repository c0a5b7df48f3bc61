#include <ATen/ATen.h>

#include <functional>
#include <vector>

#include "where.h"

/// Gradients of parts of tensors, which have zeros elsewhere, beside eager.
namespace sinter::test {
namespace {

using at::Tensor;

struct Program {
  const char* name;
  std::function<Tensor(const Tensor& x)> of;  ///< of [4, 12, 6]
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all{
      {"a slice", [](const Tensor& x) { return x.slice(1, 2, 7).sin() * 2; }},
      {"overlapping slices", [](const Tensor& x) { return x.slice(1, 0, 8) * x.slice(1, 3, 11) + x.slice(1, 4); }},
      {"rows one by one",
       [](const Tensor& x) {
         Tensor state = x.select(1, 0).tanh();
         for (int64_t i = 1; i < 12; ++i) state = (state + x.select(1, i)).tanh();
         return state;
       }},
      {"the last row", [](const Tensor& x) { return x.select(1, -1) * x.select(0, 1).sum(); }},
      {"every second element", [](const Tensor& x) { return x.slice(1, 0, 12, 2) * x.slice(1, 1, 12, 2).exp(); }},
      {"every fifth element", [](const Tensor& x) { return x.slice(1, 1, 12, 5).cos(); }},
      {"quarters of images",
       [](const Tensor& x) {
         return at::cat({x.slice(1, 0, 12, 2).slice(2, 0, 6, 2), x.slice(1, 1, 12, 2).slice(2, 1, 6, 2)}, 2) * 3;
       }},
      {"a roll", [](const Tensor& x) { return at::roll(x, {3, -1}, {1, 2}) * x; }},
      {"chunks",
       [](const Tensor& x) {
         const auto parts = x.chunk(3, 1);
         return parts[0] * at::sigmoid(parts[1]) + parts[2];
       }},
  };
  return all;
}

Tensor gradient(const Program& program, const Tensor& data) {
  const Tensor x = data.detach().requires_grad_();
  const Tensor y = program.of(x);
  (y * y).sum().backward();
  return x.grad();
}

class PartGradients : public OnDevice {};

TEST_P(PartGradients, are_eagers) {
  for (const auto dtype : {at::kFloat, at::kHalf, at::kDouble}) {
    for (const Program& program : programs()) {
      const auto fast = compile([&](const Tensor& x) { return gradient(program, x); },
                                unlimited({.mode = GetParam().mode, .strict = true}));
      for (int call = 0; call < 4; ++call) {
        const Tensor x = at::randn({4, 12, 6}, at::TensorOptions(GetParam().device)).to(dtype);
        const auto outcome = same(fast(x), gradient(program, x), dtype == at::kHalf ? 1e-2 : 1e-4);
        ASSERT_TRUE(outcome) << program.name << " " << dtype << ": " << outcome.message() << "\n" << fast.report();
      }
      EXPECT_GT(fast.stats().replayed, 0) << program.name << "\n" << fast.report();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PartGradients, everywhere(), name_of);

}  // namespace
}  // namespace sinter::test
