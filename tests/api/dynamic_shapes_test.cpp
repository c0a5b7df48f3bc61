#include <ATen/ops/cat.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/softmax.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <random>

#include "api_test.h"

/// Sizes that change from call to call.
namespace sinter::test {
namespace {

using DynamicShapes = Api;

class GpuDynamicShapes : public Api {
 public:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  }

 private:
  FullPrecision no_tf32_;
};

struct MlpImpl : torch::nn::Module {
  MlpImpl()
      : in(register_module("in", torch::nn::Linear(24, 48))), out(register_module("out", torch::nn::Linear(48, 10))) {}
  at::Tensor forward(const at::Tensor& x) { return at::sigmoid(out->forward(erf_gelu(in->forward(x)))) * 2; }
  torch::nn::Linear in, out;
};
TORCH_MODULE(Mlp);

/// Halves height and width twice, once by a stride and once by a pooling, and adds a path around a convolution.
struct PyramidImpl : torch::nn::Module {
  PyramidImpl()
      : first(register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)))),
        second(register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).padding(1)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(8))),
        head(register_module("head", torch::nn::Linear(8, 5))) {}
  at::Tensor forward(const at::Tensor& x) {
    const auto wide = at::max_pool2d(at::relu(norm->forward(first->forward(x))), 3, 2, 1);
    const auto deep = at::relu(second->forward(wide) + wide);
    return head->forward(deep.mean({2, 3}));
  }
  torch::nn::Conv2d first, second;
  torch::nn::BatchNorm2d norm;
  torch::nn::Linear head;
};
TORCH_MODULE(Pyramid);

/// One block of a decoder: heads are split by view and transpose, scores are of size length by length.
struct AttentionImpl : torch::nn::Module {
  AttentionImpl()
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({16})))),
        qkv(register_module("qkv", torch::nn::Linear(16, 48))),
        out(register_module("out", torch::nn::Linear(16, 16))) {}
  at::Tensor forward(const at::Tensor& x) {
    const auto batch = x.size(0);
    const auto length = x.size(1);
    const auto heads = qkv->forward(norm->forward(x)).view({batch, length, 3, 4, 4}).permute({2, 0, 3, 1, 4});
    const auto scores = at::softmax(at::matmul(heads[0] * 0.5, heads[1].transpose(-2, -1)), -1);
    const auto mixed = at::matmul(scores, heads[2]).transpose(1, 2).reshape({batch, length, 16});
    return x + erf_gelu(out->forward(mixed));
  }
  torch::nn::LayerNorm norm;
  torch::nn::Linear qkv, out;
};
TORCH_MODULE(Attention);

/// Sizes from `first` to `last` in an order that repeats itself from run to run.
std::vector<int64_t> shuffled(int64_t first, int64_t last) {
  std::vector<int64_t> sizes;
  for (int64_t size = first; size <= last; ++size) sizes.push_back(size);
  std::shuffle(sizes.begin(), sizes.end(), std::mt19937(1));  // NOLINT: the same order every time
  return sizes;
}

const EntryReport& dynamic_entry(const Report& report) {
  const auto found = std::ranges::find_if(report.entries, [](const auto& entry) { return !entry.dynamic.empty(); });
  if (found == report.entries.end()) throw std::runtime_error("no dynamic entry in\n" + report.text());
  return *found;
}

struct Served {
  Report report;
  Stats stats;
};

/// Calls a compiled model once for each input and compares with eager.
template <class Model, class Inputs>
Served serve(Model& model, Options options, const std::vector<int64_t>& sizes, Inputs&& input, at::Device device) {
  model->eval();
  model->to(device);
  auto fast = compile(model, unlimited(std::move(options)));
  for (const int64_t size : sizes) {
    const at::Tensor x = input(size).to(device);
    // Libraries choose their kernels by size and address: eager itself rounds differently from run to run.
    const auto outcome = same(fast(x), model->forward(x), 1e-4);
    if (outcome) continue;
    ADD_FAILURE() << size << ": " << outcome.message() << "\n" << fast.report();
    break;
  }
  return {fast.report(), fast.stats()};
}

/// One of an order of magnitude and one with a remainder by 8 are recorded.
void expect_served(const Served& served, int64_t calls) {
  EXPECT_LE(served.stats.recorded, 28) << served.report;
  EXPECT_GE(served.stats.replayed, calls - 28) << served.report;
  EXPECT_TRUE(unbroken(served.report));
}

void a_thousand_batch_sizes(at::Device device, Mode mode) {
  Mlp model;
  const auto served =
      serve(model, {.mode = mode}, shuffled(2, 1001), [](int64_t b) { return at::randn({b, 24}); }, device);
  expect_served(served, 1000);
  EXPECT_EQ(dynamic_entry(served.report).dynamic.size(), 1U) << served.report;
  EXPECT_LE(dynamic_entry(served.report).built_for_instantiations, 4) << served.report;
}

TEST_F(DynamicShapes, a_thousand_batch_sizes_take_few_recordings) { a_thousand_batch_sizes(at::kCPU, Mode::Default); }

void lengths_up_to(int64_t longest, at::Device device) {
  Attention model;
  const auto served = serve(model, {}, shuffled(2, longest), [](int64_t s) { return at::randn({2, s, 16}); }, device);
  expect_served(served, longest - 1);
}

TEST_F(DynamicShapes, lengths_of_a_sequence_take_few_recordings) { lengths_up_to(400, at::kCPU); }

/// Every size twice: LibTorch does not say what convolutions of sizes that were not recorded give.
void spatial_sizes(at::Device device) {
  Pyramid model;
  std::vector<int64_t> sizes = shuffled(16, 55);
  sizes.insert(sizes.end(), sizes.begin(), sizes.begin() + 40);
  const auto served = serve(model, {}, sizes, [](int64_t s) { return at::randn({2, 3, s, s + s % 5}); }, device);
  EXPECT_GE(served.stats.replayed, 40) << served.report;
  EXPECT_TRUE(unbroken(served.report));
}

TEST_F(DynamicShapes, heights_and_widths_of_images_follow_the_rounding_of_strides_and_poolings) {
  spatial_sizes(at::kCPU);
}

TEST_F(DynamicShapes, a_frozen_weight_is_computed_once_for_all_sizes) {
  Pyramid model;
  const auto served =
      serve(model, {.freeze = true}, shuffled(2, 60), [](int64_t b) { return at::randn({b, 3, 16, 16}); }, at::kCPU);
  EXPECT_GE(served.stats.replayed, 35) << served.report;
}

TEST_F(DynamicShapes, sizes_0_and_1_are_compiled_for_themselves) {
  Mlp model;
  auto fast = compile(model, unlimited());
  for (int round = 0; round < 3; ++round) {
    for (const int64_t batch : {1, 0, 7, 20, 33, 1, 64, 0, 5}) {
      const auto x = at::randn({batch, 24});
      ASSERT_TRUE(same(fast(x), model->forward(x))) << batch << fast.report();
    }
  }
  EXPECT_GE(fast.stats().replayed, 14) << fast.report();
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(DynamicShapes, two_arguments_share_the_sizes_that_are_equal_in_every_call) {
  auto fast =
      compile([](const at::Tensor& x, const at::Tensor& y) { return erf_gelu(x) + at::sigmoid(y); }, unlimited());
  for (const int64_t size : {4, 6, 9, 12, 15, 17, 64, 100, 101, 102, 103}) {
    const auto x = at::randn({size, 5});
    const auto y = at::randn({size, 5});
    ASSERT_TRUE(same(fast(x, y), erf_gelu(x) + at::sigmoid(y)));
  }
  EXPECT_EQ(dynamic_entry(fast.report()).dynamic.size(), 1U) << fast.report();
  const auto x = at::randn({7, 5});
  const auto y = at::randn({1, 5});
  ASSERT_TRUE(same(fast(x, y), erf_gelu(x) + at::sigmoid(y))) << "no member: they differ";
}

TEST_F(DynamicShapes, a_parameter_that_is_replaced_is_seen_by_every_size) {
  Mlp model;
  auto fast = compile(model, unlimited());
  for (const int64_t batch : shuffled(2, 40)) fast(at::randn({batch, 24}));
  model->out->weight = at::randn({10, 48});
  for (const int64_t batch : shuffled(2, 40)) {
    const auto x = at::randn({batch, 24});
    ASSERT_TRUE(same(fast(x), model->forward(x))) << batch;
  }
}

TEST_F(DynamicShapes, with_the_option_the_second_shape_builds_no_kernels) {
  auto fast = compile([](const at::Tensor& x) { return erf_gelu(x) * 1.375; }, unlimited({.dynamic = true}));
  for (const int64_t size : {40, 40, 60, 60}) fast(at::randn({size, 50}));
  const auto report = fast.report();
  ASSERT_EQ(report.entries.size(), 2);
  EXPECT_EQ(report.entries[1].kernel_origins().built, 0) << report;
}

TEST_F(DynamicShapes, a_promise_that_cannot_hold_is_refused) {
  const auto x = at::randn({40, 50});
  EXPECT_THROW(mark_dynamic(x, 2), UserError);
  EXPECT_THROW(mark_dynamic(x, 0, 50, 60), UserError);
  EXPECT_THROW(mark_dynamic(x, 0, 40, 40), UserError);
  EXPECT_THROW(mark_dynamic(at::Tensor(), 0), UserError);
  EXPECT_NO_THROW(mark_dynamic(x, -1));
}

TEST_F(GpuDynamicShapes, a_thousand_batch_sizes_take_few_recordings) {
  a_thousand_batch_sizes(at::Device(at::kCUDA, 0), Mode::Default);
}

/// A dozen sizes, eight times each.
Served sizes_that_come_again(at::Device device) {
  Mlp model;
  std::vector<int64_t> sizes;
  for (int round = 0; round < 8; ++round) {
    for (const int64_t size : shuffled(2, 13)) sizes.push_back(size);
  }
  auto served =
      serve(model, {.mode = Mode::ReduceOverhead}, sizes, [](int64_t b) { return at::randn({b, 24}); }, device);
  EXPECT_GE(served.stats.replayed, 72) << "three of four: the others are recorded\n" << served.report;
  return served;
}

TEST_F(DynamicShapes, sizes_that_come_again_are_replayed) {
  for (const auto& entry : sizes_that_come_again(at::kCPU).report.entries) {
    EXPECT_EQ(entry.graphs + entry.recorded_instantiations, 0);
  }
}

TEST_F(GpuDynamicShapes, sizes_that_come_again_are_recorded_as_graphs) {
  const auto served = sizes_that_come_again(at::Device(at::kCUDA, 0));
  int64_t graphs = 0;
  for (const auto& entry : served.report.entries) graphs += entry.graphs + entry.recorded_instantiations;
  EXPECT_GE(graphs, 8) << served.report;
}

TEST_F(GpuDynamicShapes, lengths_of_a_sequence_take_few_recordings) { lengths_up_to(1001, at::Device(at::kCUDA, 0)); }

TEST_F(GpuDynamicShapes, heights_and_widths_of_images) { spatial_sizes(at::Device(at::kCUDA, 0)); }

}  // namespace
}  // namespace sinter::test
