#include <ATen/ops/randn_like.h>
#include <c10/core/Allocator.h>

#include <algorithm>

#include "api_test.h"

// Every way in which a tensor that a program read can change between its calls, by the guard that notices.
namespace sinter::test {
namespace {

using at::Tensor;

/// A change of a tensor of four by four that is no result of copying; it lies in the first half of its storage, and
/// someone else holds it too until `others` is emptied.
struct Change {
  const char* name;
  const char* guard;
  void (*make)(Tensor& weight, std::vector<Tensor>& others);
};

constexpr Change kChanges[] = {
    {"resized", "state closure.0: size[0]", [](Tensor& weight, auto&) { weight.resize_({3, 4}); }},
    {"resized_beyond_its_memory", "state closure.0: memory",
     [](Tensor& weight, auto&) { weight.resize_({400, 4}).fill_(3); }},
    {"resized_to_nothing", "state closure.0: size[1]", [](Tensor& weight, auto&) { weight.resize_({4, 0}); }},
    {"transposed", "state closure.0: stride[0]", [](Tensor& weight, auto&) { weight.t_(); }},
    {"unsqueezed", "state closure.0: sizes", [](Tensor& weight, auto&) { weight.unsqueeze_(0); }},
    {"moved_within_its_storage", "state closure.0: memory",
     [](Tensor& weight, auto&) { weight.as_strided_({4, 4}, {4, 1}, 16); }},
    {"given_other_data", "state closure.0: memory",
     [](Tensor& weight, auto&) { weight.set_data(at::randn_like(weight)); }},
    {"given_another_storage", "state closure.0: memory",
     [](Tensor& weight, auto&) { weight.set_(at::randn_like(weight)); }},
    {"given_other_memory_in_its_storage", "state closure.0: memory",
     [](Tensor& weight, auto&) {
       auto* storage = weight.storage().unsafeGetStorageImpl();
       storage->set_data_ptr_noswap(storage->allocator()->allocate(storage->nbytes()));
       weight.fill_(3);
     }},
    {"given_another_dtype", "state closure.0: dtype",
     [](Tensor& weight, auto&) { weight.set_data(weight.to(at::kDouble)); }},
    {"negated_lazily", "state closure.0: dispatch keys", [](Tensor& weight, auto&) { weight._set_neg(true); }},
    {"freed", "state closure.0",
     [](Tensor& weight, std::vector<Tensor>& others) {
       others.clear();
       weight = at::randn_like(weight);
     }},
    {"replaced_while_another_holds_it", "state closure.0: references",
     [](Tensor& weight, auto&) { weight = at::randn_like(weight); }},
};

struct Case {
  at::DeviceType device;
  Change change;
};

class StateGuards : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().device == at::kCUDA && !at::hasCUDA()) GTEST_SKIP() << "no CUDA device";
  }

  c10::NoGradGuard no_grad_;
};

/// Names of the guards that failed before the last entry.
std::vector<std::string> missed(const Report& report) {
  std::vector<std::string> names;
  for (const auto& miss : report.entries.back().because) names.push_back(miss.guard);
  return names;
}

TEST_P(StateGuards, notice_and_the_next_call_is_right) {
  const auto& [device, change] = GetParam();
  auto weight = at::randn({8, 4}, device).as_strided_({4, 4}, {4, 1}, 0);
  std::vector<Tensor> others{weight};
  auto fast = compile([&weight](const Tensor& x) { return x * weight; }, trusted({.verify = Verify::off}));
  const auto x = at::randn({1}, device);
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * weight));
  ASSERT_GT(replays(fast.report()), 0);
  const auto before = fast.report().entries.front().replays;

  change.make(weight, others);
  ASSERT_TRUE(same(fast(x), x * weight));

  const auto report = fast.report();
  EXPECT_EQ(report.entries.front().replays, before);
  ASSERT_EQ(report.entries.size(), 2) << report;
  const auto names = missed(report);
  EXPECT_NE(std::find(names.begin(), names.end(), change.guard), names.end()) << report;
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * weight));
}

std::vector<Case> cases(at::DeviceType device) {
  std::vector<Case> all;
  for (const auto& change : kChanges) all.push_back({device, change});
  return all;
}

std::string name(const ::testing::TestParamInfo<Case>& info) { return info.param.change.name; }

INSTANTIATE_TEST_SUITE_P(Cpu, StateGuards, ::testing::ValuesIn(cases(at::kCPU)), name);
INSTANTIATE_TEST_SUITE_P(Gpu, StateGuards, ::testing::ValuesIn(cases(at::kCUDA)), name);

class MoreStateGuards : public Api {};

TEST_F(MoreStateGuards, requiring_gradients_is_noticed_in_grad_mode) {
  auto weight = at::randn({4});
  auto fast = compile([&weight](const Tensor& x) { return x * weight; }, trusted({.verify = Verify::off}));
  const auto x = at::randn({4});
  const at::AutoGradMode grad(true);
  for (int call = 0; call < 3; ++call) ASSERT_FALSE(fast(x).requires_grad());
  weight.requires_grad_();
  const auto y = fast(x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_TRUE(same(y, x * weight));
  EXPECT_EQ(missed(fast.report()), std::vector<std::string>{"state closure.0: requires_grad"});
  weight.requires_grad_(false);
  EXPECT_FALSE(fast(x).requires_grad());
  EXPECT_EQ(fast.report().entries.size(), 2);
}

TEST_F(MoreStateGuards, requiring_gradients_does_not_matter_without_grad_mode) {
  auto weight = at::randn({4});
  auto fast = compile([&weight](const Tensor& x) { return x * weight; }, trusted({.verify = Verify::off}));
  const auto x = at::randn({4});
  for (int call = 0; call < 3; ++call) fast(x);
  weight.requires_grad_();
  EXPECT_FALSE(fast(x).requires_grad());
  EXPECT_EQ(fast.report().entries.size(), 1);
}

TEST_F(MoreStateGuards, tensors_of_every_rank_are_watched) {
  for (int64_t rank = 1; rank <= 7; ++rank) {
    auto sizes = std::vector<int64_t>(static_cast<size_t>(rank), 2);
    auto weight = at::randn(sizes);
    auto fast = compile([&weight](const Tensor& x) { return x * weight; }, trusted({.verify = Verify::off}));
    const auto x = at::randn({1});
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * weight));
    EXPECT_GT(replays(fast.report()), 0);
    sizes.back() = 1;
    weight.resize_(sizes);
    ASSERT_TRUE(same(fast(x), x * weight)) << "rank " << rank;
    EXPECT_EQ(missed(fast.report()).front(), "state closure.0: size[" + std::to_string(rank - 1) + "]");
    weight.transpose_(0, rank - 1);
    ASSERT_TRUE(same(fast(x), x * weight)) << "rank " << rank;
  }
}

TEST_F(MoreStateGuards, a_scalar_and_an_empty_tensor_are_watched) {
  for (const auto& sizes : {std::vector<int64_t>{}, std::vector<int64_t>{0}}) {
    auto weight = at::randn(sizes);
    auto fast = compile([&weight](const Tensor& x) { return x * weight; }, trusted({.verify = Verify::off}));
    const auto x = at::randn({1});
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * weight));
    weight.resize_({3}).fill_(2);
    ASSERT_TRUE(same(fast(x), x * weight));
    EXPECT_EQ(fast.report().entries.size(), 2);
  }
}

TEST_F(MoreStateGuards, a_tensor_that_is_what_it_was_again_replays) {
  auto weight = at::randn({4, 4});
  auto fast = compile([&weight](const Tensor& x) { return x * weight; }, trusted({.verify = Verify::off}));
  const auto x = at::randn({1});
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * weight));
  const auto before = replays(fast.report());
  weight.unsqueeze_(2).squeeze_(2);  // leaves what it wrote behind the sizes that it has
  ASSERT_TRUE(same(fast(x), x * weight));
  EXPECT_EQ(replays(fast.report()), before + 1);
  weight.t_();
  ASSERT_TRUE(same(fast(x), x * weight));
  EXPECT_EQ(missed(fast.report()).front(), "state closure.0: stride[0]");
}

TEST_F(MoreStateGuards, a_gradient_that_nobody_asked_for_does_not_matter_in_grad_mode) {
  auto weight = at::randn({4});
  auto fast = compile([&weight](const Tensor& x) { return x * weight; }, trusted({.verify = Verify::off}));
  const auto x = at::randn({4});
  const at::AutoGradMode grad(true);
  for (int call = 0; call < 3; ++call) ASSERT_FALSE(fast(x).requires_grad());
  const auto before = replays(fast.report());
  weight.mutable_grad() = at::ones({4});  // makes what LibTorch keeps for autograd
  ASSERT_TRUE(same(fast(x), x * weight));
  EXPECT_EQ(replays(fast.report()), before + 1);
  weight.requires_grad_();
  EXPECT_TRUE(fast(x).requires_grad());
}

TEST_F(MoreStateGuards, a_tensor_that_gets_a_history_is_noticed_in_grad_mode) {
  auto weight = at::randn({4});
  auto fast = compile([&weight](const Tensor& x) { return x * weight; }, trusted({.verify = Verify::off}));
  const auto x = at::randn({4});
  const auto other = at::randn({4}).requires_grad_();
  const at::AutoGradMode grad(true);
  weight.mutable_grad();
  for (int call = 0; call < 3; ++call) ASSERT_FALSE(fast(x).requires_grad());
  weight.mul_(other);
  const auto y = fast(x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_TRUE(same(y, x * weight));
}

TEST_F(MoreStateGuards, one_of_many_that_changes_is_named) {
  std::vector<Tensor> weights;
  for (int64_t i = 0; i < 40; ++i)
    weights.push_back(at::randn(i % 2 == 0 ? at::IntArrayRef{4} : at::IntArrayRef{3, 4}));
  const auto sum = [&weights](const Tensor& x) {
    Tensor y = x;
    for (const auto& weight : weights) y = y + weight;
    return y;
  };
  auto fast = compile(sum, trusted({.verify = Verify::off}));
  const auto x = at::randn({3, 4});
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), sum(x)));
  for (const size_t changed : {size_t{0}, size_t{17}, size_t{39}}) {
    weights[changed].set_data(at::randn_like(weights[changed]));
    ASSERT_TRUE(same(fast(x), sum(x)));
    EXPECT_EQ(missed(fast.report()), std::vector<std::string>{"state closure." + std::to_string(changed) + ": memory"});
  }
}

}  // namespace
}  // namespace sinter::test
