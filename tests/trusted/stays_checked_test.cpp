// Replay::trusted: calls that cannot be known without the callable's host code, and stay checked.
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/trusted/trusted.h"

namespace sinter::test {
namespace {

using at::Tensor;
namespace nn = torch::nn;

class StaysChecked : public Trusted {};

/// Runs a program of one tensor for some calls beside eager; gives how often the compiled one's host code ran in the
/// last three of them.
template <class Program>
int late_runs(const Program& program, const Options& options, const std::function<Tensor()>& draw, std::string* text) {
  int runs = 0;
  const auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return program(x);
      },
      options);
  for (int call = 0; call < 12; ++call) {
    if (call == 9) runs = 0;
    const Tensor x = draw();
    at::manual_seed(100 + call);
    const Tensor wanted = program(x).clone();
    at::manual_seed(100 + call);
    EXPECT_TRUE(same(fast(x), wanted)) << "call " << call;
  }
  *text = fast.report().text();
  return runs;
}

TEST_P(StaysChecked, what_cannot_be_known_without_the_host_code_is_checked_on_every_call) {
  const c10::NoGradGuard no_grad;
  const auto draw = [&] { return random({7}); };
  const auto stays_checked = [&](const char* what, const auto& program, const std::string& reason) {
    std::string text;
    EXPECT_EQ(late_runs(program, options(), draw, &text), 3) << what << "\n" << text;
    EXPECT_NE(text.find(reason), std::string::npos) << what << "\n" << text;
  };
  stays_checked(
      "a read", [](const Tensor& x) { return x.sum().item<float>() > 0 ? x + 1 : x - 1; }, "runs between segments");
  stays_checked("a draw", [](const Tensor& x) { return x * at::rand_like(x); }, "");
  Tensor cache;
  stays_checked("a kept tensor", [&](const Tensor& x) { return (cache = x * 2) + 1; }, "kept beside its results");
  stays_checked(
      "a result that is kept as well", [&](const Tensor& x) { return cache = x * 2; }, "kept beside its results");
  stays_checked(
      "memory that it makes and keeps",
      [&](const Tensor& x) {
        cache = at::empty({7}, x.options());
        at::mul_out(cache, x, x);
        return x * 2;
      },
      "kept beside its results");
  stays_checked(
      "a setting",
      [](const Tensor& x) {
        const bool before = at::globalContext().deterministicAlgorithms();
        at::globalContext().setDeterministicAlgorithms(true, false);
        const Tensor y = at::matmul(x.unsqueeze(0), x.unsqueeze(1)) + x;
        at::globalContext().setDeterministicAlgorithms(before, false);
        return y;
      },
      "settings");
  stays_checked(
      "a tensor of the host",
      [&](const Tensor& x) {
        std::vector<float> numbers{1, 2, 3, 4, 5, 6, 7};
        return x + at::from_blob(numbers.data(), {7}, at::kFloat).clone().to(x.device());
      },
      "");
}

TEST_P(StaysChecked, a_callable_that_changes_what_its_arguments_hold_is_checked_on_every_call) {
  const c10::NoGradGuard no_grad;
  const auto swapped = compile(
      [](Tensor& a, Tensor& b, int& calls) {
        ++calls;
        std::swap(a, b);
        return a * 2;
      },
      options());
  Tensor a = random({7}), b = random({7});
  int calls = 0;
  for (int call = 0; call < 8; ++call) {
    const Tensor was_a = a, was_b = b;
    ASSERT_TRUE(same(swapped(a, b, calls), was_b * 2)) << call;
    ASSERT_TRUE(a.is_same(was_b) && b.is_same(was_a)) << call;
  }
  EXPECT_EQ(calls, 8);
  EXPECT_NE(swapped.report().text().find("changes which tensors or numbers"), std::string::npos) << swapped.report();
  const auto grown = compile(
      [](std::vector<Tensor>& all, const Tensor& x) {
        all.push_back(x + 1);
        return x * 2;
      },
      options());
  std::vector<Tensor> all;
  for (size_t call = 0; call < 8; ++call) {
    (void)grown(all, random({7}));
    ASSERT_EQ(all.size(), call + 1);
  }
}

TEST_P(StaysChecked, numbers_of_the_host_that_change_are_seen_while_the_call_is_learnt) {
  const c10::NoGradGuard no_grad;
  double factor = 0;
  int runs = 0;
  const auto fast = compile(
      [&](const Tensor& x) {
        ++runs;
        return x * factor;
      },
      options());
  for (int call = 0; call < 10; ++call) {
    factor = call + 0.5;
    const Tensor x = random({7});
    ASSERT_TRUE(same(fast(x), x * factor)) << call;
  }
  EXPECT_EQ(runs, 10) << fast.report();
  EXPECT_NE(fast.report().text().find("differs from call to call"), std::string::npos) << fast.report();
  const auto filled = compile([&](const Tensor& x) { return x * 2 + at::full({7}, factor, x.options()); }, options());
  for (int call = 0; call < 10; ++call) {
    factor = call + 0.5;
    const Tensor x = random({7});
    ASSERT_TRUE(same(filled(x), x * 2 + factor)) << call;
  }
}

TEST_P(StaysChecked, calls_agree_only_in_a_row) {
  const c10::NoGradGuard no_grad;
  int runs = 0;
  const auto fast =
      compile([&](const Tensor& x) { return ++runs % 2 == 0 ? x.exp() + runs / 20 : x.sin() * 3; }, options());
  for (int call = 1; call < 12; ++call) {
    const Tensor x = random({7});
    ASSERT_TRUE(same(fast(x), call % 2 == 0 ? x.exp() : x.sin() * 3)) << call;
  }
  EXPECT_EQ(runs, 11) << fast.report();
}

TEST_P(StaysChecked, gradients_and_training_steps_run_their_host_code) {
  nn::Sequential net(nn::Linear(6, 8), nn::BatchNorm1d(8), nn::Linear(8, 2));
  net->to(device());
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  int runs = 0;
  const auto step = compile(
      [&](const Tensor& x) {
        ++runs;
        optimizer.zero_grad();
        const Tensor loss = net->forward(x).square().mean();
        loss.backward();
        optimizer.step();
        return loss.detach();
      },
      options());
  for (int call = 0; call < 8; ++call) (void)step(random({5, 6}));
  EXPECT_EQ(runs, 8) << step.report();
  const auto forward = compile(
      [&](const Tensor& x) {
        ++runs;
        return net->forward(x);
      },
      options());
  for (int call = 0; call < 8; ++call) EXPECT_TRUE(forward(random({5, 6})).requires_grad());
  EXPECT_EQ(runs, 16) << forward.report();
}

TEST_P(StaysChecked, a_tangent_is_carried_on) {
  const auto program = [](const Tensor& x) { return x.sin() * 2; };
  const auto fast = compile(program, options());
  const c10::NoGradGuard no_grad;
  for (int call = 0; call < 6; ++call) (void)fast(random({4}));
  const Tensor x = random({4});
  const Tensor tangent = random({4});
  torch::autograd::ForwardADLevel::try_get_by_idx(0);
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  const Tensor dual = at::_make_dual(x, tangent, static_cast<int64_t>(level));
  const Tensor result = fast(dual);
  EXPECT_TRUE(same(result._fw_grad(level), program(dual)._fw_grad(level)));
  torch::autograd::ForwardADLevel::release_idx(level);
}

INSTANTIATE_TEST_SUITE_P(Cpu, StaysChecked, ::testing::Values(Where{"cpu", at::kCPU, Mode::Default}), name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, StaysChecked,
                         ::testing::Values(Where{"direct", at::kCUDA, Mode::Default},
                                           Where{"graphs", at::kCUDA, Mode::ReduceOverhead}),
                         name_of);

}  // namespace
}  // namespace sinter::test
