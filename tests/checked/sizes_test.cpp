// Sizes that change from call to call: a path for another size follows from those recorded.
#include <c10/core/GradMode.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "checked.h"

namespace sinter::test {
namespace {

class Sizes : public Checked {
  c10::NoGradGuard no_grad_;
};

/// Sizes from `first` to `last` in an order that repeats itself from run to run.
std::vector<int64_t> shuffled(int64_t first, int64_t last) {
  std::vector<int64_t> sizes;
  for (int64_t size = first; size <= last; ++size) sizes.push_back(size);
  std::shuffle(sizes.begin(), sizes.end(), std::mt19937(1));  // NOLINT: the same order every time
  return sizes;
}

/// Calls a compiled function once for each size and compares with eager; gives the function.
template <class Program, class Inputs>
auto serve(const Program& program, const std::vector<int64_t>& sizes, Inputs&& input, Options options = checked()) {
  auto fast = compile(program, std::move(options));
  for (const int64_t size : sizes) {
    const at::Tensor x = input(size);
    const auto outcome = same(fast(x), program(x), 1e-4);
    if (outcome) continue;
    ADD_FAILURE() << size << ": " << outcome.message() << "\n" << fast.report();
    break;
  }
  return fast;
}

TEST_F(Sizes, a_hundred_and_fifty_batch_sizes_take_few_recordings_and_kernels) {
  torch::nn::Linear in(24, 48), out(48, 10);
  const auto mlp = [&](const at::Tensor& x) { return at::log_softmax(out->forward(at::gelu(in->forward(x))), -1); };
  const auto fast = serve(mlp, shuffled(2, 151), [](int64_t batch) { return at::randn({batch, 24}); });
  EXPECT_EQ(fast.stats().recorded, 2);
  EXPECT_EQ(fast.stats().replayed, 148);
  const auto entry = fast.report().entries.at(0);
  ASSERT_EQ(entry.dynamic.size(), 1) << fast.report();
  EXPECT_EQ(entry.dynamic[0], "s0: size[0] of tensor 1 of operator 2, aten::addmm");
  EXPECT_EQ(entry.instantiations, fast.stats().shapes);
  EXPECT_LE(entry.built_for_instantiations, 4);
}

TEST_F(Sizes, lengths_of_a_sequence_follow_through_views_and_products) {
  torch::nn::Linear qkv(16, 48), out(16, 16);
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({16}));
  const auto attention = [&](const at::Tensor& x) {
    const auto batch = x.size(0), length = x.size(1);
    const auto heads = qkv->forward(norm->forward(x)).view({batch, length, 3, 4, 4}).permute({2, 0, 3, 1, 4});
    const auto scores = at::softmax(at::matmul(heads[0] * 0.5, heads[1].transpose(-2, -1)), -1);
    const auto mixed = at::matmul(scores, heads[2]).transpose(1, 2).reshape({batch, length, 16});
    return x + at::gelu(out->forward(mixed));
  };
  const auto fast = serve(attention, shuffled(2, 90), [](int64_t length) { return at::randn({2, length, 16}); });
  EXPECT_EQ(fast.stats().recorded, 2) << fast.report();
}

TEST_F(Sizes, attention_of_the_library_replays_for_lengths_it_has_not_met) {
  torch::nn::MultiheadAttention layer(torch::nn::MultiheadAttentionOptions(16, 4));
  layer->eval();
  const auto program = [&](const at::Tensor& x) { return std::get<0>(layer->forward(x, x, x)); };
  const auto fast = serve(program, shuffled(2, 61), [](int64_t length) { return at::randn({length, 2, 16}); });
  EXPECT_EQ(fast.stats().recorded, 2) << fast.report();
}

TEST_F(Sizes, heights_and_widths_follow_the_rounding_of_strides_and_poolings) {
  torch::nn::Conv2d first(torch::nn::Conv2dOptions(3, 4, 3).stride(2).padding(1));
  torch::nn::Conv2d second(torch::nn::Conv2dOptions(4, 4, 5).stride(3));
  const auto pyramid = [&](const at::Tensor& x) {
    return second->forward(at::max_pool2d(at::relu(first->forward(x)), 2, 2, 1)).flatten(1);
  };
  (void)serve(pyramid, shuffled(24, 80), [](int64_t size) { return at::randn({2, 3, size, size + size % 5}); });
}

/// Operators that LibTorch cannot say the layouts of for the meta device.
TEST_F(Sizes, of_networks_of_convolutions_and_norms_are_told_by_rules) {
  torch::nn::Conv2d first(torch::nn::Conv2dOptions(3, 8, 3).stride(2).padding(1));
  torch::nn::Conv2d second(torch::nn::Conv2dOptions(8, 8, 3).groups(8).dilation(2));
  torch::nn::BatchNorm2d batch_norm(8);
  torch::nn::GroupNorm group_norm(2, 8);
  batch_norm->eval();
  const auto network = [&](const at::Tensor& x) {
    const at::Tensor a = at::relu(batch_norm->forward(first->forward(x)));
    const at::Tensor b =
        at::where(a > 0.5, a, group_norm->forward(second->forward(at::constant_pad_nd(a, {2, 2, 2, 2}))));
    return at::roll(at::adaptive_avg_pool2d(b, {2, 3}).flip({1}).var({2}), 1, 0);
  };
  for (const at::MemoryFormat format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const auto fast = serve(network, shuffled(2, 40), [&](int64_t size) {
      return at::randn({size, 3, 9 + size, 7 + 2 * size}).contiguous(format);
    });
    EXPECT_EQ(fast.stats().recorded, 2) << fast.report();
  }
}

TEST_F(Sizes, a_cache_that_grows_by_one_replays) {
  at::Tensor cache;
  const auto program = [&](const at::Tensor& x) {
    cache = cache.defined() ? at::cat({cache, x}) : x.clone();
    return at::softmax(at::matmul(x, cache.t()), -1).matmul(cache);
  };
  auto fast = compile(program, checked());
  at::Tensor grown;
  for (int call = 0; call < 200; ++call) {
    const auto x = at::randn({1, 8});
    grown = grown.defined() ? at::cat({grown, x}) : x.clone();
    ASSERT_TRUE(same(fast(x), at::softmax(at::matmul(x, grown.t()), -1).matmul(grown), 1e-4)) << call;
  }
  EXPECT_GE(fast.stats().replayed, 160) << fast.report();
}

TEST_F(Sizes, a_program_that_branches_on_a_size_is_never_wrong) {
  const auto program = [](const at::Tensor& x) { return x.size(0) % 2 == 0 ? x * 2 : at::relu(x) + 1; };
  (void)serve(program, shuffled(2, 60), [](int64_t size) { return at::randn({size, 8}); });
  const auto threshold = [](const at::Tensor& x) { return x.size(0) > 37 ? x.t().contiguous() * 2 : x * 2; };
  (void)serve(threshold, shuffled(2, 90), [](int64_t size) { return at::randn({size, 8}); });
}

TEST_F(Sizes, numbers_that_follow_from_no_size_are_given_or_compared) {
  const auto scaled = [](const at::Tensor& x) { return x * (1.0 / std::sqrt(static_cast<double>(x.size(0)))); };
  (void)serve(scaled, shuffled(2, 40), [](int64_t size) { return at::randn({size, 8}); });
  int64_t calls = 0;
  auto fast = compile([&](const at::Tensor& x) { return x.narrow(0, ++calls % 3, 2) * 2; }, checked());
  for (const int64_t size : shuffled(5, 60)) {
    const auto x = at::randn({size, 8});
    const auto now = fast(x);
    ASSERT_TRUE(same(now, x.narrow(0, calls % 3, 2) * 2)) << size << "\n" << fast.report();
  }
}

TEST_F(Sizes, sizes_of_several_arguments_are_each_their_own) {
  auto fast =
      compile([](const at::Tensor& x, const at::Tensor& y) { return at::tanh(x).matmul(at::sigmoid(y)); }, checked());
  for (const int64_t size : shuffled(2, 80)) {
    const auto x = at::randn({size, 5}), y = at::randn({5, 3 + size % 11});
    ASSERT_TRUE(same(fast(x, y), at::tanh(x).matmul(at::sigmoid(y)))) << size << "\n" << fast.report();
  }
  const auto dynamic = fast.report().entries.at(0).dynamic;
  EXPECT_EQ(dynamic.size(), 2) << fast.report();
}

TEST_F(Sizes, strides_and_parts_of_other_tensors) {
  const auto program = [](const at::Tensor& x) { return at::gelu(x) + x.slice(1, 1, 2); };
  auto fast = compile(program, checked());
  for (const int64_t size : shuffled(3, 40)) {
    const auto x = at::randn({size, size + 3});
    ASSERT_TRUE(same(fast(x), program(x)));
    ASSERT_TRUE(same(fast(x.t()), program(x.t())));
    const auto part = at::randn({size, 60}).slice(1, 0, size);
    ASSERT_TRUE(same(fast(part), program(part))) << size << "\n" << fast.report();
    const auto shifted = at::randn({size + 2, 7}).slice(0, 2);
    ASSERT_TRUE(same(fast(shifted), program(shifted))) << size << "\n" << fast.report();
  }
}

TEST_F(Sizes, results_that_are_views_of_an_argument_stay_views) {
  auto fast = compile([](const at::Tensor& x) { return std::tuple(x.slice(0, 1).t(), x + 1); }, checked());
  for (const int64_t size : shuffled(4, 60)) {
    const auto x = at::randn({size, 3});
    const auto [view, sum] = fast(x);
    ASSERT_TRUE(view.is_alias_of(x));
    ASSERT_TRUE(same(view, x.slice(0, 1).t())) << size;
    ASSERT_TRUE(same(sum, x + 1));
  }
}

TEST_F(Sizes, writes_to_an_argument_are_made_for_every_size) {
  auto fast = compile([](at::Tensor x) { return x.add_(1).slice(0, 0, 2).mul_(3); }, checked());
  for (const int64_t size : shuffled(2, 50)) {
    auto x = at::randn({size, 3});
    auto want = x.clone();
    fast(x);
    want.add_(1).slice(0, 0, 2).mul_(3);
    ASSERT_TRUE(same(x, want)) << size << fast.report();
  }
}

TEST_F(Sizes, training_steps_of_any_batch_size) {
  const c10::AutoGradMode grad(true);
  torch::nn::Linear layer(6, 3), eager(6, 3);
  {
    const c10::NoGradGuard no_grad;
    eager->weight.copy_(layer->weight);
    eager->bias.copy_(layer->bias);
  }
  const auto step = [](torch::nn::Linear& net, const at::Tensor& x) {
    const auto loss = at::tanh(net->forward(x)).pow(2).mean();
    loss.backward();
    const c10::NoGradGuard no_grad;
    for (at::Tensor& parameter : net->parameters()) {
      parameter.sub_(parameter.grad() * 0.1);
      parameter.mutable_grad().reset();
    }
    return loss.detach();
  };
  auto fast = compile([&](const at::Tensor& x) { return step(layer, x); }, checked());
  for (const int64_t size : shuffled(2, 70)) {
    const auto x = at::randn({size, 6});
    ASSERT_TRUE(same(fast(x), step(eager, x))) << size;
    ASSERT_TRUE(same(layer->weight, eager->weight)) << size;
  }
  EXPECT_EQ(fast.stats().recorded, 2) << fast.report();
}

TEST_F(Sizes, without_the_option_every_shape_is_recorded) {
  auto options = checked();
  options.dynamic = false;
  const auto program = [](const at::Tensor& x) { return at::gelu(x) * 2; };
  const auto fast = serve(program, shuffled(2, 21), [](int64_t size) { return at::randn({size, 5}); }, options);
  EXPECT_EQ(fast.stats().recorded, 20);
}

TEST_F(Sizes, a_promised_range_is_replayed_from_the_third_shape_on) {
  auto fast = compile([](const at::Tensor& x) { return at::gelu(x) * 2; }, checked());
  const auto first = at::randn({40, 50});
  mark_dynamic(first, 0, 2, 512);
  fast(first);
  for (const int64_t size : {60, 2, 511, 7, 300}) {
    const auto x = at::randn({size, 50});
    ASSERT_TRUE(same(fast(x), at::gelu(x) * 2));
  }
  EXPECT_EQ(fast.stats().recorded, 2);
  EXPECT_EQ(fast.stats().shapes, 4) << fast.report();
}

}  // namespace
}  // namespace sinter::test
