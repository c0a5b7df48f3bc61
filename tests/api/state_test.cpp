#include <ATen/ops/empty.h>
#include <ATen/ops/randn_like.h>
#include <c10/core/Allocator.h>

#include <string>
#include <vector>

#include "where.h"

/// Tensors that a callable finds beside its arguments: every way in which they can change between calls is seen by the
/// next one.
namespace sinter::test {
namespace {

using at::Tensor;
using State = Api;

TEST_F(State, an_in_place_update_of_a_weight_is_seen_by_the_next_call) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, unlimited());
  const auto x = at::randn({2, 4});
  for (int call = 0; call < 6; ++call) {
    layer->weight.mul_(1.5);
    ASSERT_TRUE(same(fast(x), layer->forward(x))) << "call " << call;
  }
  EXPECT_EQ(fast.report().entries.size(), 1);
  EXPECT_EQ(fast.stats().replayed, 5);
}

TEST_F(State, writing_through_data_is_seen_too) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, unlimited());
  const auto x = at::randn({2, 4});
  for (int call = 0; call < 4; ++call) {
    layer->weight.data().fill_(2 + call);
    EXPECT_TRUE(same(fast(x), layer->forward(x)));
  }
  EXPECT_EQ(fast.stats().replayed, 3);
}

TEST_F(State, a_weight_that_is_replaced_or_given_other_data_replays) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, unlimited());
  const auto x = at::randn({2, 4});
  for (int call = 0; call < 9; ++call) {
    if (call % 3 == 1) layer->weight = at::randn({4, 4});
    if (call % 3 == 2) layer->weight.set_data(at::randn({4, 4}));
    ASSERT_TRUE(same(fast(x), layer->forward(x))) << "call " << call;
  }
  EXPECT_EQ(fast.report().entries.size(), 1) << fast.report();
  EXPECT_EQ(fast.stats().replayed, 8);
}

TEST_F(State, moving_a_module_to_another_dtype_is_seen) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile(layer, unlimited());
  const auto x = at::randn({2, 4});
  for (int call = 0; call < 2; ++call) fast(x);
  layer->to(at::kDouble);
  const auto wide = x.to(at::kDouble);
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(wide), layer->forward(wide)));
  EXPECT_EQ(fast.stats().replayed, 3);
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
  auto fast = compile(layer, unlimited());
  const auto x = at::rand({10});
  for (int call = 0; call < 6; ++call) {
    ASSERT_TRUE(same(fast(x), layer(x))) << call;
    layer->lower.add_(1);
    layer->upper.mul_(2);
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 3);
}

TEST_F(State, nothing_is_kept_alive_between_calls) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile([layer](const at::Tensor& x) mutable { return layer->forward(x); }, unlimited());
  auto x = at::randn({2, 4});
  at::Tensor y;
  for (int call = 0; call < 4; ++call) {
    y = fast(x);
    EXPECT_EQ(x.use_count(), 1);
    EXPECT_EQ(y.use_count(), 1);
    EXPECT_EQ(layer->weight.use_count(), 2);  // the member and the parameter list
  }
}

TEST_F(State, a_closed_over_tensor_that_dies_is_no_crash) {
  auto weight = std::make_shared<at::Tensor>(at::randn({4}));
  auto fast = compile([weight](const at::Tensor& x) { return x * *weight; }, unlimited());
  const auto x = at::ones({4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), *weight));
  *weight = at::randn({4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(x), *weight));
  EXPECT_EQ(fast.stats().replayed, 5);
}

TEST_F(State, a_tensor_that_is_argument_and_closed_over_at_once_is_told_from_another_argument) {
  auto weight = at::randn({4});
  const auto other = at::randn({4});
  auto by_value = compile([weight](const at::Tensor& x) { return x * weight; }, unlimited());
  auto by_reference = compile([&weight](const at::Tensor& x) { return x - weight; }, unlimited());
  auto by_view = compile([&weight](const at::Tensor& x) { return x + weight; }, unlimited());
  auto as_parameter =
      compile([layer = torch::nn::Linear(4, 4)](
                  const at::Tensor& x) mutable { return std::make_pair(x * layer->weight, layer->weight); },
              unlimited());
  for (int round = 0; round < 3; ++round) {
    for (int call = 0; call < 3; ++call) {
      EXPECT_TRUE(same(by_value(weight), weight * weight));
      EXPECT_TRUE(same(by_reference(weight), weight - weight));
      EXPECT_TRUE(same(by_view(weight.view({4})), weight + weight));
      const auto parameter = as_parameter(other).second;
      EXPECT_TRUE(same(as_parameter(parameter).first, parameter * parameter));
    }
    for (int call = 0; call < 3; ++call) {
      EXPECT_TRUE(same(by_value(other), other * weight));
      EXPECT_TRUE(same(by_reference(other), other - weight));
      EXPECT_TRUE(same(by_view(other), other + weight));
    }
  }
  EXPECT_TRUE(unbroken(by_value.report()));
  EXPECT_GE(by_value.stats().replayed, 15) << by_value.report();
}

TEST_F(State, an_argument_that_turns_out_to_be_closed_over_later_is_right_too) {
  const auto weight = at::randn({4});
  auto fast = compile([weight](const at::Tensor& x) { return x * weight; }, unlimited());
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(at::ones({4})), weight));
  for (int call = 0; call < 9; ++call) EXPECT_TRUE(same(fast(weight), weight * weight));
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(at::ones({4})), weight));
  EXPECT_TRUE(unbroken(fast.report())) << fast.report();
}

TEST_F(State, a_small_tensor_that_the_host_reads) {
  const auto scale = at::ones({});
  auto fast = compile([scale](const at::Tensor& x) { return x * scale.item<float>(); }, unlimited());
  const auto x = at::ones({4});
  for (const float value : {1.F, 2.F, 1.F}) {
    scale.fill_(value);
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same(fast(x), x * value));
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 9);
}

TEST_F(State, a_frozen_function_gives_the_same_results) {
  ConvBnRelu model;
  model->eval();
  auto fast = compile(model, unlimited({.freeze = true}));
  for (int call = 0; call < 4; ++call) {
    const auto x = at::randn({2, 3, 8, 8});
    ASSERT_TRUE(same(fast(x), model->forward(x))) << fast.report();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_EQ(fast.stats().replayed, 3);
}

/// A change of a tensor of four by four that lies in the first half of its storage, and that someone else holds too
/// until `others` is emptied.
struct Change {
  const char* name;
  void (*make)(Tensor& weight, std::vector<Tensor>& others);
  bool breaks = false;  ///< what it leaves cannot be compiled
};

constexpr Change kChanges[] = {
    {"resized", [](Tensor& weight, auto&) { weight.resize_({3, 4}); }},
    {"resized_beyond_its_memory", [](Tensor& weight, auto&) { weight.resize_({400, 4}).fill_(3); }},
    {"resized_to_nothing", [](Tensor& weight, auto&) { weight.resize_({4, 0}); }},
    {"transposed", [](Tensor& weight, auto&) { weight.t_(); }},
    {"unsqueezed", [](Tensor& weight, auto&) { weight.unsqueeze_(0); }},
    {"moved_within_its_storage", [](Tensor& weight, auto&) { weight.as_strided_({4, 4}, {4, 1}, 16); }},
    {"given_other_data", [](Tensor& weight, auto&) { weight.set_data(at::randn_like(weight)); }},
    {"given_another_storage", [](Tensor& weight, auto&) { weight.set_(at::randn_like(weight)); }},
    {"given_other_memory_in_its_storage",
     [](Tensor& weight, auto&) {
       auto* storage = weight.storage().unsafeGetStorageImpl();
       storage->set_data_ptr_noswap(storage->allocator()->allocate(storage->nbytes()));
       weight.fill_(3);
     }},
    {"given_another_dtype", [](Tensor& weight, auto&) { weight.set_data(weight.to(at::kDouble)); }},
    {"negated_lazily", [](Tensor& weight, auto&) { weight._set_neg(true); }, true},
    {"freed",
     [](Tensor& weight, std::vector<Tensor>& others) {
       others.clear();
       weight = at::randn_like(weight);
     }},
    {"replaced_while_another_holds_it", [](Tensor& weight, auto&) { weight = at::randn_like(weight); }},
    {"squeezed_and_unsqueezed", [](Tensor& weight, auto&) { weight.unsqueeze_(2).squeeze_(2); }},
};

class Changes : public OnDevice {
  c10::NoGradGuard no_grad_;
};
INSTANTIATE_TEST_SUITE_P(Where, Changes, everywhere(), name_of);

TEST_P(Changes, of_a_tensor_are_seen_by_the_next_call) {
  const at::Device device(GetParam().device);
  for (const Change& change : kChanges) {
    SCOPED_TRACE(change.name);
    auto weight = at::randn({8, 4}, device).as_strided_({4, 4}, {4, 1}, 0);
    std::vector<Tensor> others{weight};
    auto fast = compile([&weight](const Tensor& x) { return x * weight; }, unlimited({.mode = GetParam().mode}));
    const auto x = at::randn({1}, device);
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * weight));
    EXPECT_EQ(fast.stats().replayed, 2);
    change.make(weight, others);
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same(fast(x), x * weight));
    EXPECT_GE(fast.stats().replayed, 4) << fast.report();
    EXPECT_EQ(fast.stats().breaks, change.breaks ? 1 : 0) << fast.report();
  }
}

TEST_P(Changes, of_tensors_of_every_rank_are_seen) {
  const at::Device device(GetParam().device);
  for (int64_t rank = 0; rank <= 7; ++rank) {
    SCOPED_TRACE(rank);
    auto sizes = std::vector<int64_t>(static_cast<size_t>(rank), 2);
    auto weight = at::randn(sizes, device);
    auto fast = compile([&weight](const Tensor& x) { return x * weight; }, unlimited({.mode = GetParam().mode}));
    const auto x = at::randn({1}, device);
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * weight));
    EXPECT_EQ(fast.stats().replayed, 2);
    if (rank > 0) sizes.back() = 1;
    weight.resize_(rank > 0 ? sizes : std::vector<int64_t>{1});
    ASSERT_TRUE(same(fast(x), x * weight));
    weight.transpose_(0, weight.dim() - 1);
    ASSERT_TRUE(same(fast(x), x * weight));
  }
}

TEST_P(Changes, of_an_empty_tensor_are_seen) {
  const at::Device device(GetParam().device);
  auto weight = at::randn({0}, device);
  auto fast = compile([&weight](const Tensor& x) { return x * weight; }, unlimited({.mode = GetParam().mode}));
  const auto x = at::randn({1}, device);
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * weight));
  weight.resize_({3}).fill_(2);
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * weight));
}

TEST_P(Changes, of_one_of_many_are_seen) {
  const at::Device device(GetParam().device);
  std::vector<Tensor> weights;
  for (int64_t i = 0; i < 40; ++i) {
    weights.push_back(at::randn(i % 2 == 0 ? at::IntArrayRef{4} : at::IntArrayRef{3, 4}, device));
  }
  const auto sum = [&weights](const Tensor& x) {
    Tensor y = x;
    for (const auto& weight : weights) y = y + weight;
    return y;
  };
  auto fast = compile(sum, unlimited({.mode = GetParam().mode}));
  const auto x = at::randn({3, 4}, device);
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), sum(x)));
  for (const size_t changed : {size_t{0}, size_t{17}, size_t{39}}) {
    weights[changed].set_data(at::randn_like(weights[changed]));
    ASSERT_TRUE(same(fast(x), sum(x)));
  }
  EXPECT_EQ(fast.stats().replayed, 5);
}

/// What autograd asks of state.
class Histories : public Api {
 protected:
  Tensor weight_ = at::randn({4});
  const Tensor x_ = at::randn({4});
  Compiled<std::function<Tensor(const Tensor&)>> fast_ =
      compile(std::function<Tensor(const Tensor&)>([this](const Tensor& x) { return x * weight_; }), unlimited());
};

TEST_F(Histories, begin_where_state_requires_gradients_in_grad_mode) {
  const at::AutoGradMode grad(true);
  for (int call = 0; call < 3; ++call) ASSERT_FALSE(fast_(x_).requires_grad());
  weight_.requires_grad_();
  for (int call = 0; call < 3; ++call) {
    const auto y = fast_(x_);
    EXPECT_TRUE(y.requires_grad());
    EXPECT_TRUE(same(y, x_ * weight_));
  }
  weight_.requires_grad_(false);
  EXPECT_FALSE(fast_(x_).requires_grad());
  EXPECT_GE(fast_.stats().replayed, 4);
}

TEST_F(Histories, begin_where_state_gets_one) {
  const at::AutoGradMode grad(true);
  weight_.mutable_grad();
  for (int call = 0; call < 3; ++call) ASSERT_FALSE(fast_(x_).requires_grad());
  weight_.mul_(at::randn({4}).requires_grad_());
  for (int call = 0; call < 3; ++call) {
    const auto y = fast_(x_);
    EXPECT_TRUE(y.requires_grad());
    EXPECT_TRUE(same(y, x_ * weight_));
  }
}

TEST_F(Histories, do_not_begin_without_grad_mode) {
  for (int call = 0; call < 3; ++call) fast_(x_);
  weight_.requires_grad_();
  EXPECT_FALSE(fast_(x_).requires_grad());
  EXPECT_EQ(fast_.report().entries.size(), 1);
  EXPECT_EQ(fast_.stats().replayed, 3);
}

TEST_F(Histories, do_not_begin_where_a_gradient_is_put_that_nobody_asked_for) {
  const at::AutoGradMode grad(true);
  for (int call = 0; call < 3; ++call) ASSERT_FALSE(fast_(x_).requires_grad());
  weight_.mutable_grad() = at::ones({4});  // makes what LibTorch keeps for autograd
  ASSERT_TRUE(same(fast_(x_), x_ * weight_));
  EXPECT_EQ(fast_.stats().replayed, 3);
  weight_.requires_grad_();
  EXPECT_TRUE(fast_(x_).requires_grad());
}

}  // namespace
}  // namespace sinter::test
