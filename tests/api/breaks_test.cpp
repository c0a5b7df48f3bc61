#include "api_test.h"

namespace sinter::test {
namespace {

using Breaks = Api;

TEST_F(Breaks, an_argument_turned_in_place_is_turned_once_a_call_and_named) {
  auto fast = compile([](at::Tensor x) { return x.t_() * 2; }, trusted());
  const auto x = at::randn({4, 3});
  const auto before = x.clone();
  for (int call = 1; call <= 4; ++call) {
    const auto turned = call % 2 == 1 ? before.t() : before;
    EXPECT_TRUE(at::equal(fast(x), turned * 2));
    EXPECT_EQ(x.sizes(), turned.sizes());
  }
  const auto found = only_break(fast.report());
  EXPECT_EQ(found.code, BreakCode::input_mutation);
  EXPECT_TRUE(found.op.starts_with("aten::t_")) << found.op;
}

TEST_F(Breaks, state_squeezed_in_place_is_named) {
  const auto state = at::zeros({1, 3});
  auto fast = compile([state](const at::Tensor& x) { return x + state.unsqueeze_(0); }, trusted());
  fast(at::zeros({3}));
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::state_mutation);
}

TEST_F(Breaks, a_host_read_keeps_following_the_value) {
  auto fast = compile([](const at::Tensor& x) { return x.sum().item<float>() > 0 ? x + 1 : x - 1; }, trusted());
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(same(fast(at::ones({4})), at::ones({4}) + 1));
    EXPECT_TRUE(same(fast(-at::ones({4})), -at::ones({4}) - 1));
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(Breaks, a_call_that_needs_gradients_runs_eagerly_and_keeps_its_graph) {
  const at::AutoGradMode grad(true);
  auto fast = compile(erf_gelu, trusted());
  auto x = at::randn({4}).requires_grad_();
  for (int call = 0; call < 3; ++call) {
    const auto y = fast(x);
    EXPECT_TRUE(y.requires_grad());
  }
  fast(x).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  const auto found = only_break(fast.report());
  EXPECT_EQ(found.code, BreakCode::needs_gradient);
  EXPECT_NE(found.hint.find("NoGradGuard"), std::string::npos);
}

TEST_F(Breaks, parameters_that_require_gradients_count_as_well) {
  const at::AutoGradMode grad(true);
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, trusted());
  const auto x = at::randn({2, 4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(fast(x).requires_grad());
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::needs_gradient);
  const c10::NoGradGuard no_grad;
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), layer->forward(x)));
  EXPECT_TRUE(fast.report().entries.back().compiled) << fast.report();
}

TEST_F(Breaks, grad_mode_without_anything_that_requires_gradients_compiles) {
  const at::AutoGradMode grad(true);
  auto fast = compile(erf_gelu, trusted());
  const auto x = at::randn({4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), erf_gelu(x)));
  EXPECT_TRUE(unbroken(fast.report()));
}

/// LibTorch refuses to make anew the history of one of several views whose base was written.
TEST_F(Breaks, a_result_whose_history_cannot_be_made_is_returned_as_eager_returns_it) {
  const at::AutoGradMode grad(true);
  const auto program = [](const at::Tensor& x) {
    const auto y = x * 2;
    const auto first = y.unbind(0)[0];
    y.mul_(3);
    return first;
  };
  const auto x = at::randn({2, 3}).requires_grad_();
  ASSERT_THROW((void)program(x).grad_fn(), c10::Error);
  auto fast = compile(program, trusted());
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(same(fast(x), program(x)));
}

TEST_F(Breaks, batch_norm_in_training_updates_its_statistics_once_a_call) {
  ConvBnRelu model;
  model->train();
  auto fast = compile(model, trusted());
  const auto x = at::randn({2, 3, 8, 8});
  for (int call = 1; call <= 3; ++call) {
    fast(x);
    EXPECT_EQ(model->bn->num_batches_tracked.item<int64_t>(), call);
  }
  EXPECT_TRUE(unbroken(fast.report())) << fast.report();
}

TEST_F(Breaks, a_sparse_input_runs_eagerly) {
  auto fast = compile([](const at::Tensor& x) { return x.to_dense() + 1; }, trusted());
  const auto sparse = at::eye(3).to_sparse();
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(sparse), at::eye(3) + 1));
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::unsupported_input);
}

TEST_F(Breaks, an_argument_of_a_foreign_type_runs_eagerly) {
  struct Foreign {
    double factor;
  };
  auto fast = compile([](const at::Tensor& x, const Foreign& f) { return x * f.factor; }, trusted());
  const auto x = at::ones({2});
  EXPECT_TRUE(same(fast(x, Foreign{2}), x * 2));
  EXPECT_TRUE(same(fast(x, Foreign{3}), x * 3));
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::unsupported_input);
}

TEST_F(Breaks, a_result_of_a_foreign_type_is_handed_through) {
  struct Pair {
    at::Tensor a;
    int b;
  };
  auto fast = compile([](const at::Tensor& x) { return Pair{x * 2, 5}; }, trusted());
  for (int call = 0; call < 3; ++call) {
    const auto pair = fast(at::ones({2}));
    EXPECT_TRUE(same(pair.a, at::ones({2}) * 2));
    EXPECT_EQ(pair.b, 5);
  }
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::unsupported_input);
}

TEST_F(Breaks, a_callable_without_a_result_runs_every_time) {
  at::Tensor seen;
  auto fast = compile([&seen](const at::Tensor& x) { seen = x * 2; }, trusted());
  for (int call = 1; call <= 3; ++call) {
    fast(at::ones({2}) * call);
    EXPECT_TRUE(same(seen, at::ones({2}) * 2 * call));
  }
}

TEST_F(Breaks, a_program_that_changes_on_its_own_is_found_on_the_second_call) {
  int calls = 0;
  auto fast = compile([&calls](const at::Tensor& x) { return x * static_cast<double>(++calls); }, trusted());
  const auto x = at::ones({2});
  for (int call = 1; call <= 5; ++call) EXPECT_EQ(fast(x)[0].item<float>(), static_cast<float>(call));
  const auto report = fast.report();
  const auto found = only_break(report);
  EXPECT_EQ(found.code, BreakCode::unstable);
  EXPECT_EQ(report.entries[0].verifications.size(), 1);
  EXPECT_FALSE(report.entries[0].verifications[0].equal);
}

TEST_F(Breaks, a_scalar_result_that_changes_on_its_own_is_found) {
  int64_t calls = 0;
  auto fast = compile([&calls](const at::Tensor& x) { return std::make_tuple(x * 2, ++calls); }, trusted());
  for (int64_t call = 1; call <= 5; ++call) EXPECT_EQ(std::get<1>(fast(at::ones({2}))), call);
  EXPECT_EQ(only_break(fast.report()).code, BreakCode::unstable);
}

TEST_F(Breaks, fullgraph_turns_a_break_into_a_user_error_that_names_it) {
  auto fast = compile([](const at::Tensor& x) { return x.to_sparse().to_dense(); },
                      trusted({.fullgraph = true, .name = "reader"}));
  for (int call = 0; call < 2; ++call) {
    try {
      fast(at::ones({2}));
      FAIL() << "no error";
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("reader: fullgraph: unsupported-op"), 0) << text;
    }
  }
}

TEST_F(Breaks, exceptions_of_the_program_pass_unchanged_and_leave_nothing_behind) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, trusted());
  EXPECT_THROW(fast(at::randn({2, 5})), c10::Error);
  const auto x = at::randn({2, 4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), layer->forward(x)));
  EXPECT_THROW(fast(at::randn({2, 5})), c10::Error);
  auto own = compile(
      [](const at::Tensor& t) -> at::Tensor {
        if (t.numel() > 3) throw std::range_error("too many");
        return t + 1;
      },
      trusted());
  EXPECT_THROW(own(at::ones({4})), std::range_error);
  EXPECT_TRUE(same(own(at::ones({3})), at::ones({3}) + 1));
}

}  // namespace
}  // namespace sinter::test
