#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <string_view>

#include "tests/checked/checked.h"

/// What LibTorch does above the operators' kernels while gradients are off, in calls that are answered from a
/// recording.
namespace sinter::test {
namespace {

using at::Tensor;
namespace nn = torch::nn;

TEST_F(Checked, views_are_views_of_what_they_look_at) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& x) {
    const Tensor made = x * 2;
    return std::vector<Tensor>{
        x.view({3, 2}).t(), made.reshape({6}).slice(0, 1, 4), made.flatten(),
        made.detach(),      x.narrow(1, 1, 1).squeeze(1),     made.view({2, 3}).unbind(1).back()};
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const Tensor x = at::randn({2, 3});
    const auto expected = program(x);
    const auto results = fast(x);
    for (size_t i = 0; i < results.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_TRUE(at::equal(results[i], expected[i]));
      EXPECT_EQ(results[i].is_view(), expected[i].is_view());
      if (expected[i].is_view()) {
        EXPECT_EQ(results[i]._base().sizes(), expected[i]._base().sizes());
        EXPECT_EQ(results[i]._base().is_same(x), expected[i]._base().is_same(x));
      }
    }
    const int64_t before = x._version();
    results[0].add_(1);
    EXPECT_EQ(x._version(), before + 1) << "a view shares the version of what it looks at";
  }
  EXPECT_GE(fast.stats().replayed, 4);
}

TEST_F(Checked, writes_into_lists_are_counted_in_versions) {
  Tensor w = at::ones({3}).requires_grad_(), u = at::ones({3}).requires_grad_();
  const Tensor x = at::ones({3});
  auto fast = compile(
      [&](const Tensor& in) {
        const Tensor made = in * w;
        const c10::NoGradGuard no_grad;
        at::_foreach_mul_(std::vector<Tensor>{w, u, w, in.view({3, 1}), made}, 0.5);
        return made._version();
      },
      checked());
  const int64_t ws = w._version(), us = u._version(), xs = x._version();
  for (int64_t call = 1; call <= 5; ++call) {
    EXPECT_EQ(fast(x), 1) << call;
    EXPECT_EQ(w._version() - ws, 2 * call);
    EXPECT_EQ(u._version() - us, call);
    EXPECT_EQ(x._version() - xs, call);
  }
  EXPECT_GE(fast.stats().replayed, 3) << fast.report();
}

TEST_F(Checked, backward_passes_refuse_what_a_list_operator_has_written) {
  Tensor w = at::full({2}, 3.0F).requires_grad_(), u = at::full({2}, 5.0F).requires_grad_();
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor loss = (w * u * x).sum();
        {
          const c10::NoGradGuard no_grad;
          at::_foreach_mul_(std::vector<Tensor>{w, u}, 0.5);
        }
        loss.backward();
        return loss;
      },
      checked());
  for (int call = 0; call < 4; ++call) EXPECT_THROW((void)fast(at::ones({2})), c10::Error) << call;
}

TEST_F(Checked, gradients_of_inference_mode_have_no_versions) {
  Tensor w = at::ones({3}).requires_grad_();
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor loss = (w * x).sum();
        const c10::InferenceMode inference;
        loss.backward();
        return loss;
      },
      checked());
  for (int call = 1; call <= 5; ++call) {
    (void)fast(at::ones({3}));
    EXPECT_EQ(w.grad()[0].item<float>(), call);
  }
}

TEST_F(Checked, gradients_of_inference_mode_are_not_added_to_outside_of_it) {
  Tensor w = at::ones({3}).requires_grad_();
  auto fast = compile([&](const Tensor& x) { (w * x).sum().backward(); }, checked());
  for (int call = 0; call < 4; ++call) fast(at::ones({3}));
  {
    const c10::InferenceMode inference;
    w.mutable_grad() = at::zeros({3});
  }
  for (int call = 1; call <= 2; ++call) {
    EXPECT_THROW(fast(at::ones({3})), c10::Error);
    EXPECT_EQ(w.grad()[0].item<float>(), call) << "added, and then refused, as eager does";
  }
}

TEST_F(Checked, gradients_in_one_memory_count_their_writes_once) {
  Tensor a = at::ones({3}).requires_grad_(), b = at::ones({3}).requires_grad_();
  auto fast = compile(
      [&](const Tensor& x) {
        const Tensor flat = at::zeros({6});
        a.mutable_grad() = flat.narrow(0, 0, 3);
        b.mutable_grad() = flat.narrow(0, 3, 3);
        (a * b * x).sum().backward();
        return flat;
      },
      checked());
  const int64_t expected = fast(at::ones({3}))._version();
  for (int call = 1; call < 5; ++call) EXPECT_EQ(fast(at::ones({3}))._version(), expected) << call;
}

TEST_F(Checked, writes_are_counted_in_versions) {
  const c10::NoGradGuard no_grad;
  Tensor state = at::zeros({3});
  const auto program = [&](const Tensor& x) {
    state.add_(x).mul_(0.5);
    state.view({3, 1}).add_(1);
    return x + state;
  };
  auto fast = compile(program, checked());
  const int64_t before = state._version();
  for (int64_t call = 1; call <= 5; ++call) {
    (void)fast(at::ones({3}));
    EXPECT_EQ(state._version() - before, 3 * call);
  }
  EXPECT_GE(fast.stats().replayed, 3);
}

TEST_F(Checked, a_write_that_autograd_must_hear_of_is_heard) {
  Tensor weight = at::ones({3}).requires_grad_();
  auto fast = compile(
      [&](const Tensor& x) {
        const c10::NoGradGuard no_grad;
        return weight.mul_(2).mul(x);
      },
      checked());
  for (int call = 0; call < 4; ++call) {
    const Tensor loss = (weight * weight).sum();
    const c10::NoGradGuard no_grad;
    (void)fast(at::ones({3}));
    const c10::AutoGradMode grad(true);
    EXPECT_THROW(loss.backward(), c10::Error) << "the product's operand was modified";
  }
}

TEST_F(Checked, gradients_switched_on_inside_flow) {
  const c10::NoGradGuard no_grad;
  nn::Linear layer(3, 2);
  const auto program = [&](const Tensor& x) {
    const Tensor before = layer(x).relu();
    Tensor gradient;
    {
      const c10::AutoGradMode grad(true);
      const Tensor loss = layer(x).pow(2).sum();
      gradient = torch::autograd::grad({loss}, {layer->weight}).front();
    }
    return before.sum() + gradient.sum() + layer(x).sum();
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 5; ++call) {
    const Tensor x = at::randn({4, 3});
    EXPECT_TRUE(at::allclose(fast(x), program(x)));
  }
}

TEST_F(Checked, tangents_go_through_composite_operators) {
  const c10::NoGradGuard no_grad;
  nn::Linear layer(3, 2);
  const auto program = [&](const Tensor& x) { return layer(x).flatten().sigmoid(); };
  auto fast = compile(program, checked());
  const Tensor x = at::randn({4, 3});
  for (int call = 0; call < 4; ++call) (void)fast(x);
  const uint64_t level = torch::autograd::forward_ad::enter_dual_level();
  const Tensor dual = at::_make_dual(x, at::ones_like(x), static_cast<int64_t>(level));
  const Tensor expected = std::get<1>(at::_unpack_dual(program(dual), static_cast<int64_t>(level)));
  const Tensor tangent = std::get<1>(at::_unpack_dual(fast(dual), static_cast<int64_t>(level)));
  ASSERT_TRUE(tangent.defined());
  EXPECT_TRUE(at::allclose(tangent, expected));
  torch::autograd::forward_ad::exit_dual_level(level);
}

TEST_F(Checked, composite_operators_differ_with_their_numbers_and_tensors) {
  const c10::NoGradGuard no_grad;
  nn::Linear first(3, 3), second(3, 3);
  int64_t calls = 0;
  const auto program = [&](const Tensor& x, int64_t turn) {
    const Tensor y = (turn % 2 == 0 ? first : second)(x);
    const Tensor z = at::layer_norm(y, {3}, {}, {}, turn % 3 == 0 ? 1e-5 : 0.5);
    return at::matmul(z, turn % 5 == 0 ? x.mT() : y.mT()).flatten(turn % 2);
  };
  auto fast = compile([&](const Tensor& x) { return program(x, ++calls); }, checked());
  for (int64_t call = 1; call <= 60; ++call) {
    const Tensor x = at::randn({2, 4, 3});
    EXPECT_TRUE(at::allclose(fast(x), program(x, call), 1e-4, 1e-5)) << call;
  }
  EXPECT_GE(fast.stats().replayed, 25);
}

/// Replays of the entries that call an operator of this name.
int64_t replays_with(const Report& report, std::string_view op) {
  int64_t replays = 0;
  for (const EntryReport& entry : report.entries) {
    const bool calls = std::ranges::any_of(
        entry.externs, [&](const ExternRecord& call) { return call.op.find(op) != std::string::npos; });
    if (calls) replays += entry.replays;
  }
  return replays;
}

TEST_F(Checked, what_a_composite_operator_asks_of_settings_is_asked_again) {
  const c10::NoGradGuard no_grad;
  const auto program = [](const Tensor& q) { return at::scaled_dot_product_attention(q, q, q).sum(); };
  auto fast = compile(program, checked());
  const Tensor q = at::randn({1, 2, 8, 16});
  for (int call = 0; call < 12; ++call) {
    at::globalContext().setSDPUseFlash(call % 3 != 0);
    EXPECT_TRUE(at::allclose(fast(q), program(q)));
  }
  at::globalContext().setSDPUseFlash(true);
  EXPECT_EQ(replays_with(fast.report(), "flash_attention"), 7) << fast.report();
  EXPECT_EQ(replays_with(fast.report(), "aten::bmm"), 3) << fast.report();
}

TEST_F(Checked, autocast_is_seen_by_operators_answered_before_it) {
  const c10::NoGradGuard no_grad;
  nn::Linear layer(4, 4);
  bool autocast = false;
  const auto program = [&](const Tensor& x) {
    at::autocast::set_autocast_enabled(at::kCPU, autocast);
    const Tensor y = layer(x).relu();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    return y;
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 12; ++call) {
    autocast = call % 4 == 3;
    const Tensor x = at::randn({2, 4});
    const Tensor expected = program(x);
    const Tensor result = fast(x);
    EXPECT_EQ(result.scalar_type(), expected.scalar_type());
    EXPECT_TRUE(at::equal(result, expected) || !autocast);
  }
}

TEST_F(Checked, composite_views_are_views_with_versions_while_gradients_are_off) {
  const at::NoGradGuard no_grad;
  Tensor state = torch::zeros({4, 6});
  const Tensor weight = torch::randn({3, 6}), bias = torch::randn({3});
  std::vector<Tensor> views, products;
  auto fast = compile(
      [&](const Tensor& x) {
        views.push_back(state.reshape({2, 12}).flatten());
        products.push_back(torch::linear(x.expand({2, 4, 6}), weight, bias));
        return (views.back() + 1) * products.back().sum();
      },
      checked());
  const Tensor product = torch::linear(torch::randn({4, 6}).expand({2, 4, 6}), weight, bias);
  for (int call = 0; call < 6; ++call) {
    fast(torch::randn({4, 6}));
    ASSERT_TRUE(views.back().is_view()) << call;
    EXPECT_TRUE(views.back()._base().is_same(state)) << call;
    const int64_t before = state._version();
    views.back().add_(1);
    EXPECT_EQ(state._version(), before + 1) << call;
    EXPECT_EQ(products.back()._version(), product._version()) << call;
    EXPECT_EQ(products.back().is_view(), product.is_view()) << call;
  }
  EXPECT_TRUE(torch::equal(state, torch::full({4, 6}, 6.)));
}

TEST_F(Checked, a_composite_view_that_was_met_on_an_inference_tensor_counts_writes_to_others) {
  const c10::NoGradGuard no_grad;
  Tensor state;
  const auto program = [&] {
    const c10::InferenceMode inference;
    at::imag(state).fill_(0.25);
  };
  auto fast = compile(program, checked());
  for (int call = 0; call < 6; ++call) {
    const bool inference = call == 1 || call == 3;
    const c10::InferenceMode made_in(inference);
    state = at::view_as_complex(at::randn({1, 2})).clone();
    const int64_t before = inference ? 0 : state._version();
    fast();
    EXPECT_EQ(at::imag(state).sum().item<float>(), 0.25F) << call;
    EXPECT_EQ(inference ? 1 : state._version() - before, 1) << call;
  }
}

}  // namespace
}  // namespace sinter::test
