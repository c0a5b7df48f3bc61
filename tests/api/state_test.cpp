#include "api_test.h"

namespace sinter::test {
namespace {

using State = Api;

TEST_F(State, an_in_place_update_of_a_weight_is_seen_by_the_next_call) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, trusted());
  const auto x = at::randn({2, 4});
  for (int call = 0; call < 6; ++call) {
    layer->weight.mul_(1.5);
    ASSERT_TRUE(same(fast(x), layer->forward(x))) << "call " << call;
  }
  EXPECT_EQ(fast.report().entries.size(), 1);
  EXPECT_GT(replays(fast.report()), 0);
}

TEST_F(State, writing_through_data_is_seen_too) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, trusted({.verify = Verify::off}));
  const auto x = at::randn({2, 4});
  fast(x);
  layer->weight.data().fill_(2);
  EXPECT_TRUE(same(fast(x), layer->forward(x)));
}

TEST_F(State, a_replaced_weight_is_noticed_by_its_lost_reference) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, trusted({.verify = Verify::off}));
  const auto x = at::randn({2, 4});
  fast(x);
  fast(x);
  layer->weight = at::randn({4, 4});
  ASSERT_TRUE(same(fast(x), layer->forward(x)));
  const auto report = fast.report();
  ASSERT_EQ(report.entries.size(), 2);
  EXPECT_EQ(report.entries[1].because[0].guard, "state weight: references") << report;
  EXPECT_FALSE(report.entries[0].notes.empty());
}

TEST_F(State, set_data_is_noticed_by_the_address) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, trusted({.verify = Verify::off}));
  const auto x = at::randn({2, 4});
  fast(x);
  layer->weight.set_data(at::randn({4, 4}));
  EXPECT_TRUE(same(fast(x), layer->forward(x)));
  EXPECT_EQ(fast.report().entries.size(), 2);
}

TEST_F(State, moving_a_module_to_another_dtype_compiles_again) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, trusted({.verify = Verify::off}));
  const auto x = at::randn({2, 4});
  fast(x);
  layer->to(at::kDouble);
  const auto wide = x.to(at::kDouble);
  EXPECT_TRUE(same(fast(wide), layer->forward(wide)));
}

TEST_F(State, state_carries_its_modules_name) {
  ConvBnRelu model;
  model->eval();
  auto fast = compile(model, trusted());
  fast(at::randn({1, 3, 8, 8}));
  const auto report = fast.report();
  const auto& guards = report.entries[0].guards;
  const auto names_weight = [](const std::string& guard) { return guard.starts_with("state conv.weight: "); };
  EXPECT_TRUE(std::any_of(guards.begin(), guards.end(), names_weight)) << report;
}

struct FlatWeightsImpl : torch::nn::Module {
  FlatWeightsImpl() {
    const at::Tensor all = at::rand({10});
    lower = register_parameter("lower", all.slice(0, 2, 6));
    upper = register_parameter("upper", all.slice(0, 6, 10));
  }
  at::Tensor forward(const at::Tensor& x) {  // as recurrent layers see all their weights at once
    const at::Tensor all = at::empty({0}).set_(lower.storage(), 0, {10}, {1});
    return x * all + upper.sum();
  }
  at::Tensor lower, upper;
};
TORCH_MODULE(FlatWeights);

TEST_F(State, weights_seen_through_the_storage_that_they_share_are_followed) {
  FlatWeights layer;
  auto fast = compile(layer, trusted());
  const auto x = at::rand({10});
  for (int call = 0; call < 6; ++call) {
    ASSERT_TRUE(same(fast(x), layer(x))) << call;
    layer->lower.add_(1);
    layer->upper.mul_(2);
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(replays(fast.report()), 3);
}

TEST_F(State, nothing_is_kept_alive_between_calls) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile([layer](const at::Tensor& x) mutable { return layer->forward(x); }, trusted());
  auto x = at::randn({2, 4});
  at::Tensor y;
  for (int call = 0; call < 4; ++call) y = fast(x);
  EXPECT_EQ(x.use_count(), 1);
  EXPECT_EQ(y.use_count(), 1);
  EXPECT_EQ(layer->weight.use_count(), 2);  // the member and the parameter list
}

TEST_F(State, a_closed_over_tensor_that_dies_is_no_crash) {
  auto weight = std::make_shared<at::Tensor>(at::randn({4}));
  auto fast = compile([weight](const at::Tensor& x) { return x * *weight; }, trusted());
  const auto x = at::ones({4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), *weight));
  *weight = at::randn({4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), *weight));
  EXPECT_EQ(fast.report().entries.size(), 2);
}

TEST_F(State, a_tensor_that_is_argument_and_closed_over_at_once_is_told_from_another_argument) {
  auto weight = at::randn({4});
  const auto other = at::randn({4});
  auto by_value = compile([weight](const at::Tensor& x) { return x * weight; }, trusted());
  auto by_reference = compile([&weight](const at::Tensor& x) { return x - weight; }, trusted());
  auto by_view = compile([&weight](const at::Tensor& x) { return x + weight; }, trusted());
  for (int round = 0; round < 3; ++round) {
    for (int call = 0; call < 3; ++call) {
      EXPECT_TRUE(same(by_value(weight), weight * weight));
      EXPECT_TRUE(same(by_reference(weight), weight - weight));
      EXPECT_TRUE(same(by_view(weight.view({4})), weight + weight));
    }
    for (int call = 0; call < 3; ++call) {
      EXPECT_TRUE(same(by_value(other), other * weight));
      EXPECT_TRUE(same(by_reference(other), other - weight));
      EXPECT_TRUE(same(by_view(other), other + weight));
    }
  }
  EXPECT_TRUE(unbroken(by_value.report()));
  EXPECT_EQ(by_value.report().entries.size(), 2) << by_value.report();
}

TEST_F(State, an_argument_that_turns_out_to_be_closed_over_later_is_right_too) {
  const auto weight = at::randn({4});
  auto fast = compile([weight](const at::Tensor& x) { return x * weight; }, trusted());
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(at::ones({4})), weight));
  for (int call = 0; call < 9; ++call) EXPECT_TRUE(same(fast(weight), weight * weight));
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(at::ones({4})), weight));
  EXPECT_TRUE(unbroken(fast.report())) << fast.report();
}

TEST_F(State, a_frozen_function_gives_the_same_results) {
  ConvBnRelu model;
  model->eval();
  auto fast = compile(model, trusted({.freeze = true}));
  for (int call = 0; call < 4; ++call) {
    const auto x = at::randn({2, 3, 8, 8});
    ASSERT_TRUE(same(fast(x), model->forward(x))) << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
}

}  // namespace
}  // namespace sinter::test
