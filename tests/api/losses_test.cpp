#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <vector>

#include "where.h"

/// Losses, their gradients and the gradients of activations, which kernels compute, beside eager.
namespace sinter::test {
namespace {

using at::Tensor;

class Losses : public OnDevice {
 protected:
  [[nodiscard]] Options options() const { return unlimited({.mode = GetParam().mode, .strict = true}); }
  [[nodiscard]] Tensor random(at::IntArrayRef sizes, at::ScalarType dtype) const {
    return at::randn(sizes, at::TensorOptions(GetParam().device)).to(dtype);
  }
};

struct Loss {
  const char* name;
  std::function<Tensor(const Tensor&, const Tensor&)> of;
};

const std::vector<Loss>& losses() {
  static const std::vector<Loss> all{
      {"mse_none", [](const Tensor& x, const Tensor& y) { return at::mse_loss(x, y, at::Reduction::None); }},
      {"mse_mean", [](const Tensor& x, const Tensor& y) { return at::mse_loss(x, y, at::Reduction::Mean); }},
      {"mse_sum", [](const Tensor& x, const Tensor& y) { return at::mse_loss(x, y, at::Reduction::Sum); }},
      {"smooth_l1_none",
       [](const Tensor& x, const Tensor& y) { return at::smooth_l1_loss(x, y, at::Reduction::None, 0.7); }},
      {"smooth_l1_mean",
       [](const Tensor& x, const Tensor& y) { return at::smooth_l1_loss(x, y, at::Reduction::Mean, 0.7); }},
      {"huber_mean", [](const Tensor& x, const Tensor& y) { return at::huber_loss(x, y, at::Reduction::Mean, 0.7); }},
      {"huber_sum", [](const Tensor& x, const Tensor& y) { return at::huber_loss(x, y, at::Reduction::Sum, 1.3); }},
      {"log_sigmoid", [](const Tensor& x, const Tensor& y) { return at::log_sigmoid(x * y); }},
      {"with_logits",
       [](const Tensor& x, const Tensor& y) { return at::binary_cross_entropy_with_logits(x, at::sigmoid(y)); }},
  };
  return all;
}

const std::vector<Loss>& activations() {
  static const std::vector<Loss> all{
      {"relu", [](const Tensor& x, const Tensor& y) { return at::relu(x) * y; }},
      {"sigmoid", [](const Tensor& x, const Tensor& y) { return at::sigmoid(x) * y; }},
      {"tanh", [](const Tensor& x, const Tensor& y) { return at::tanh(x) * y; }},
      {"gelu", [](const Tensor& x, const Tensor& y) { return at::gelu(x) * y; }},
      {"gelu_tanh", [](const Tensor& x, const Tensor& y) { return at::gelu(x, "tanh") * y; }},
      {"silu", [](const Tensor& x, const Tensor& y) { return at::silu(x) * y; }},
      {"mish", [](const Tensor& x, const Tensor& y) { return at::mish(x) * y; }},
      {"softplus", [](const Tensor& x, const Tensor& y) { return at::softplus(x, 2, 3) * y; }},
      {"leaky_relu", [](const Tensor& x, const Tensor& y) { return at::leaky_relu(x, 0.2) * y; }},
      {"hard",
       [](const Tensor& x, const Tensor& y) { return at::hardtanh(x) * y + at::hardsigmoid(x) + at::hardswish(y); }},
      {"shrinks", [](const Tensor& x, const Tensor& y) { return at::hardshrink(x) * y + at::softshrink(y); }},
  };
  return all;
}

/// The result and both gradients.
std::vector<Tensor> step(const Loss& loss, const Tensor& x, const Tensor& y) {
  const at::AutoGradMode grad(true);
  const Tensor a = x.detach().requires_grad_();
  const Tensor b = y.detach().requires_grad_();
  const Tensor result = loss.of(a, b);
  const auto gradients = torch::autograd::grad({result.to(at::kFloat).sum()}, {a, b}, {}, {}, false, true);
  return {result.detach(), gradients[0], gradients[1].defined() ? gradients[1] : at::zeros_like(b)};
}

void expect_eagers_steps(const std::vector<Loss>& all, const Options& options,
                         const std::function<Tensor(at::IntArrayRef, at::ScalarType)>& random) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const double tolerance = dtype == at::kBFloat16 ? 2e-2 : dtype == at::kHalf ? 3e-3 : 2e-5;
    for (const Loss& loss : all) {
      const auto fast = compile([&](const Tensor& x, const Tensor& y) { return step(loss, x, y); }, options);
      for (int call = 0; call < 4; ++call) {
        const Tensor x = random({12, 33}, dtype), y = random({12, 33}, dtype);
        const auto found = fast(x, y), expected = step(loss, x, y);
        for (size_t i = 0; i < expected.size(); ++i) {
          const auto outcome = same(found[i], expected[i], tolerance);
          ASSERT_TRUE(outcome) << loss.name << " " << dtype << ", " << i << ": " << outcome.message();
        }
      }
      EXPECT_GT(fast.stats().replayed, 0) << loss.name << "\n" << fast.report();
    }
  }
}

TEST_P(Losses, and_their_gradients_are_eagers) {
  expect_eagers_steps(losses(), options(), [this](auto sizes, auto dtype) { return random(sizes, dtype); });
}

TEST_P(Losses, of_activations_have_eagers_gradients) {
  expect_eagers_steps(activations(), options(), [this](auto sizes, auto dtype) { return random(sizes, dtype); });
}

/// Losses of scores [n, 10, ...] and labels [n, ...], of which some are ignored.
struct ClassLoss {
  const char* name;
  std::function<Tensor(const Tensor& scores, const Tensor& labels, const Tensor& weights)> of;
};

const std::vector<ClassLoss>& class_losses() {
  static const std::vector<ClassLoss> all{
      {"mean", [](auto& x, auto& t, auto&) { return at::cross_entropy_loss(x, t, {}, at::Reduction::Mean, 3); }},
      {"sum", [](auto& x, auto& t, auto&) { return at::cross_entropy_loss(x * 2, t, {}, at::Reduction::Sum, 3); }},
      {"none", [](auto& x, auto& t, auto&) { return at::cross_entropy_loss(x, t, {}, at::Reduction::None, 3).sum(); }},
      {"weighed", [](auto& x, auto& t, auto& w) { return at::cross_entropy_loss(x, t, w, at::Reduction::Mean, 3); }},
      {"weighed sum",
       [](auto& x, auto& t, auto& w) { return at::cross_entropy_loss(x, t, w, at::Reduction::Sum, -1); }},
      {"smoothed",
       [](auto& x, auto& t, auto&) { return at::cross_entropy_loss(x, t, {}, at::Reduction::Mean, -100, 0.1); }},
      {"likelihood", [](auto& x, auto& t, auto& w) { return at::nll_loss_nd(at::log_softmax(x, 1), t, w); }},
      {"of actions", [](auto& x, auto& t, auto&) { return at::log_softmax(x, 1).gather(1, t.unsqueeze(1)).mean(); }},
  };
  return all;
}

TEST_P(Losses, of_classes_and_their_gradients_are_eagers) {
  const auto step_of = [](const ClassLoss& loss, const Tensor& x, const Tensor& t, const Tensor& w) {
    const at::AutoGradMode grad(true);
    const Tensor scores = x.detach().requires_grad_();
    const Tensor result = loss.of(scores, t, w);
    return std::vector<Tensor>{result.detach(), torch::autograd::grad({result}, {scores})[0]};
  };
  for (const auto dtype : {at::kFloat, at::kHalf}) {
    for (const bool is_image : {false, true}) {
      for (const ClassLoss& loss : class_losses()) {
        const std::vector<int64_t> labels = is_image ? std::vector<int64_t>{3, 6, 5} : std::vector<int64_t>{90};
        std::vector<int64_t> scores = labels;
        scores.insert(scores.begin() + 1, 10);
        const Tensor w = random({10}, dtype).abs() + 0.5;
        const auto fast = compile([&](const Tensor& x, const Tensor& t) { return step_of(loss, x, t, w); }, options());
        for (int call = 0; call < 4; ++call) {
          const Tensor x = random(scores, dtype);
          const Tensor t = at::randint(0, 10, labels, at::TensorOptions(GetParam().device).dtype(at::kLong));
          const auto found = fast(x, t), expected = step_of(loss, x, t, w);
          for (size_t i = 0; i < expected.size(); ++i) {
            const auto outcome = same(found[i], expected[i], dtype == at::kHalf ? 4e-3 : 2e-5);
            ASSERT_TRUE(outcome) << loss.name << " " << dtype << ", " << i << ": " << outcome.message() << "\n"
                                 << fast.report();
          }
        }
        EXPECT_GT(fast.stats().replayed, 0) << loss.name << "\n" << fast.report();
      }
    }
  }
}

/// A step whose operators are all known to kernels makes no library call.
TEST_P(Losses, a_step_of_mean_squares_behind_an_activation_is_kernels_alone) {
  const Loss loss{"", [](const Tensor& x, const Tensor& y) { return at::mse_loss(at::gelu(x), y); }};
  const auto fast = compile([&](const Tensor& x, const Tensor& y) { return step(loss, x, y); }, options());
  for (int call = 0; call < 4; ++call) (void)fast(random({12, 33}, at::kFloat), random({12, 33}, at::kFloat));
  const Report report = fast.report();
  ASSERT_FALSE(report.entries.empty());
  for (const ExternRecord& call : report.entries[0].externs) ADD_FAILURE() << call.op << "\n" << report;
}

INSTANTIATE_TEST_SUITE_P(Where, Losses, everywhere(), name_of);

}  // namespace
}  // namespace sinter::test
