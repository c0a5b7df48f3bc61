// Bytes and operations of operators, and kernels against limits.
#include <ATen/ops/add.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "frontend/profile/device_limits.h"
#include "frontend/profile/operator_sums.h"
#include "small_models.h"

namespace sinter::test {
namespace {

constexpr int64_t f32 = 4;

/// The one operator that a step calls.
ProfiledOperator only_operator(const std::function<void()>& step) {
  const torch::NoGradGuard no_grad;
  const Profile profile = sinter::profile(step, {.steps = 1, .warmup = 0, .limits = false})();
  const auto& operators = profile.modes.front().operators;
  EXPECT_EQ(operators.size(), 1U) << profile.text();
  return operators.empty() ? ProfiledOperator() : operators.front();
}

void expect_work(const std::function<void()>& step, int64_t bytes, double flops = 0) {
  const ProfiledOperator op = only_operator(step);
  EXPECT_EQ(op.bytes, bytes) << op.op;
  EXPECT_EQ(op.flops, flops) << op.op;
  EXPECT_EQ(op.dtype, flops > 0 ? "f32" : "") << op.op;
}

TEST(OperatorWork, of_elementwise_operators_is_every_place_once) {
  const at::Tensor x = at::ones({100});
  const at::Tensor y = at::ones({100});
  at::Tensor z = at::ones({100});
  const at::Tensor one = at::ones({1}).expand({100});
  expect_work([&] { (void)(x + y); }, 300 * f32);
  expect_work([&] { (void)(x * x); }, 200 * f32);
  expect_work([&] { (void)(one * x); }, 201 * f32);
  expect_work([&] { (void)(x + 1); }, 200 * f32);
  expect_work([&] { (void)z.add_(x); }, 300 * f32);
  expect_work([&] { (void)z.copy_(x); }, 200 * f32);
  expect_work([&] { (void)z.zero_(); }, 100 * f32);
  expect_work([&] { (void)at::relu(x); }, 200 * f32);
  expect_work([&] { (void)x.sum(0, true); }, 101 * f32);
  expect_work([&] { (void)x.to(at::kDouble); }, 100 * f32 + 100 * 8);
}

TEST(OperatorWork, of_views_and_memory_without_content_is_nothing) {
  const at::Tensor x = at::ones({10, 10});
  expect_work([&] { (void)x.view({100}); }, 0);
  expect_work([&] { (void)x.t(); }, 0);
  expect_work([&] { (void)at::empty({100}); }, 0);
}

TEST(OperatorWork, of_products_counts_multiplications_and_additions) {
  const at::Tensor a = at::ones({4, 8});
  const at::Tensor b = at::ones({8, 16});
  const at::Tensor turned = b.t();
  const at::Tensor column = b.select(1, 0);
  const at::Tensor bias = at::ones({16});
  const at::Tensor batch = at::ones({3, 4, 8});
  const at::Tensor other = at::ones({3, 8, 4});
  expect_work([&] { (void)at::mm(a, b); }, (32 + 128 + 64) * f32, 2 * 4 * 8 * 16);
  expect_work([&] { (void)at::linear(a, turned, bias); }, (32 + 128 + 16 + 64) * f32, 2 * 4 * 8 * 16);
  expect_work([&] { (void)at::bmm(batch, other); }, (96 + 96 + 48) * f32, 2 * 3 * 4 * 8 * 4);
  expect_work([&] { (void)at::mv(a, column); }, (32 + 8 + 4) * f32, 2 * 4 * 8);
}

TEST(OperatorWork, of_a_composite_is_that_of_all_it_calls) {
  const at::Tensor a = at::ones({4, 8});
  const at::Tensor turned = a.t();
  const at::Tensor cube = at::ones({5, 4, 8});
  expect_work([&] { (void)cube.matmul(turned); }, (160 + 32 + 80) * f32, 2 * 20 * 8 * 4);
}

TEST(OperatorWork, of_convolutions_follows_groups_and_direction) {
  const at::Tensor x = at::ones({2, 4, 8, 8});
  const at::Tensor weight = at::ones({6, 4, 3, 3});
  const at::Tensor grouped = at::ones({6, 2, 3, 3});
  const at::Tensor up = at::ones({4, 6, 2, 2});
  const int64_t out = 2 * 6 * 6 * 6;
  expect_work([&] { (void)at::conv2d(x, weight); }, (x.numel() + weight.numel() + out) * f32, 2.0 * out * 36);
  expect_work(
      [&] {
        (void)at::conv2d(x, grouped, at::Tensor(), at::IntArrayRef{1, 1}, at::IntArrayRef{0, 0}, at::IntArrayRef{1, 1},
                         2);
      },
      (x.numel() + grouped.numel() + out) * f32, 2.0 * out * 18);
  expect_work([&] { (void)at::conv_transpose2d(x, up, at::Tensor(), at::IntArrayRef{2, 2}); },
              (x.numel() + up.numel() + 2 * 6 * 16 * 16) * f32, 2.0 * static_cast<double>(x.numel()) * 24);
  const at::Tensor gradient = at::ones({2, 6, 6, 6});
  const auto backward = [&](bool input, bool filter) {
    return only_operator([&, mask = std::array<bool, 3>{input, filter, false}] {
      (void)at::convolution_backward(gradient, x, weight, {}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1, mask);
    });
  };
  EXPECT_EQ(backward(true, true).flops, 2 * 2.0 * out * 36);
  EXPECT_EQ(backward(false, true).flops, 2.0 * out * 36);
}

TEST(OperatorWork, of_attention_is_two_products_or_half_of_them) {
  const at::Tensor q = at::ones({2, 3, 16, 8});
  const double whole = 2.0 * 2 * 3 * 16 * 16 * (8 + 8);
  const auto attention = [&](bool causal) {
    return only_operator([&] { (void)at::scaled_dot_product_attention(q, q, q, {}, 0, causal); });
  };
  EXPECT_EQ(attention(false).flops, whole);
  EXPECT_EQ(attention(true).flops, whole / 2);
  EXPECT_GT(attention(false).bytes, 2 * q.numel() * f32) << "q, which is k and v too, and the result";
}

TEST(OperatorWork, of_a_look_up_is_what_is_looked_up) {
  const at::Tensor table = at::ones({1000, 8});
  const at::Tensor rows = at::zeros({5}, at::kLong);
  expect_work([&] { (void)at::embedding(table, rows); }, 5 * 8 + 2 * 40 * f32);
}

TEST(OperatorWork, is_not_known_where_no_rule_knows_it) {
  const at::Tensor x = at::ones({100});
  const at::Tensor one = at::ones({1});
  EXPECT_EQ(only_operator([&] { (void)at::topk(x, 3); }).bytes, -1);
  EXPECT_EQ(only_operator([&] { (void)one.item<float>(); }).bytes, -1) << "composed of one that is not known";
}

TEST(OperatorWork, of_a_call_that_is_recorded_is_nothing) {
  const at::Tensor x = at::ones({64, 64});
  const auto product = [&] { return std::vector<c10::IValue>{at::mm(x, x)}; };
  const Profile profile = sinter::profile(product, {.steps = 1, .warmup = 0, .compile = Options{}, .limits = false})();
  double flops = 0;
  for (const ProfiledOperator& op : profile.modes.back().operators) flops += op.flops;
  EXPECT_EQ(flops, 2.0 * 64 * 64 * 64);
}

TEST(OperatorWork, of_backward_and_compiled_steps_is_known) {
  const SmallProgram program = training_step();
  const Profile profile =
      profile_of(program, at::ones({64, 32}), {.steps = 1, .compile = Options{.compile_budget = 1e9}, .limits = false});
  const auto flops_of = [](const ModeProfile& mode) {
    double sum = 0;
    for (const ProfiledOperator& op : mode.operators) sum += op.flops;
    return sum;
  };
  // Three blocks of two products with 32 x 128, a head of 32 x 32; the input needs no gradient, but the blocks' do.
  const double forward = 2.0 * 64 * (3 * 2 * 32 * 128 + 32 * 32);
  const double first = 2.0 * 64 * 32 * 128;
  EXPECT_EQ(flops_of(profile.modes.front()), 3 * forward - first);
  EXPECT_EQ(flops_of(profile.modes.back()), 3 * forward - first) << "library calls of compiled segments";
  for (const ProfiledOperator& op : profile.modes.back().operators) {
    EXPECT_TRUE(!op.op.starts_with("fused_") || op.bytes > 0) << op.op;
  }
}

ProfiledOperator moving(const char* name, int64_t bytes, double flops, const char* dtype, double host) {
  ProfiledOperator op;
  op.op = name;
  op.bytes = bytes;
  op.flops = flops;
  op.dtype = dtype;
  op.host = host;
  return op;
}

/// 1 GB/s, products of f16 1 GFLOP/s.
ModeProfile limited() {
  ModeProfile mode;
  mode.mode = "eager";
  mode.device = "cuda:0";
  mode.steps = 1;
  mode.limits.bandwidth = 1e9;
  mode.limits.peaks = {{"f16", 1e9}};
  return mode;
}

TEST(Limits, the_larger_of_moving_and_computing_counts) {
  const DeviceLimits limits = limited().limits;
  EXPECT_EQ(limits.least_time(moving("a", 1000, 0, "", 0)), 1);
  EXPECT_EQ(limits.least_time(moving("a", 1000, 3000, "f16", 0)), 3);
  EXPECT_EQ(limits.least_time(moving("a", 5000, 3000, "f16", 0)), 5);
  EXPECT_FALSE(limits.least_time(moving("a", -1, 0, "", 0))) << "work that is not known";
  EXPECT_FALSE(limits.least_time(moving("a", 1000, 3000, "f64", 0))) << "a peak that is not known";
  EXPECT_FALSE(DeviceLimits().least_time(moving("a", 1000, 0, "", 0))) << "a device that is not known";
}

TEST(Limits, kernels_are_ordered_by_what_could_be_won) {
  ModeProfile mode = limited();
  mode.operators = {moving("long and near its limit", 990'000, 0, "", 1000), moving("short and far", 1000, 0, "", 100),
                    moving("faster than the limit", 2000, 0, "", 1), moving("unknown", -1, 0, "", 5000)};
  const auto gains = frontend::sums_by_gain(frontend::operator_sums(mode));
  ASSERT_EQ(gains.size(), 3U);
  EXPECT_EQ(gains[0].op, "short and far");
  EXPECT_DOUBLE_EQ(gains[0].gain(), 0.099);
  EXPECT_EQ(gains[1].op, "long and near its limit");
  EXPECT_EQ(gains[2].gain(), 0) << "what caches hold is faster than memory";
}

TEST(Limits, a_sum_with_a_call_that_is_not_known_is_not_known) {
  ModeProfile mode = limited();
  mode.operators = {moving("a", 1000, 0, "", 10), moving("a", -1, 0, "", 10)};
  const auto sums = frontend::operator_sums(mode);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_FALSE(sums[0].least);
  EXPECT_FALSE(sums[0].work_known);
}

TEST(Limits, text_and_json_say_what_is_known_and_what_is_not) {
  ModeProfile mode = limited();
  mode.operators = {moving("aten::mm", 1000, 3000, "f16", 10), moving("aten::topk", -1, 0, "", 10)};
  Profile profile{.name = "net", .modes = {mode}};
  const std::string text = profile.text();
  EXPECT_NE(text.find("measured on cuda:0: 1 GB/s, products of f16 0.001 TFLOP/s"), std::string::npos) << text;
  EXPECT_NE(text.find("not known for 50.0 % of the time: aten::topk"), std::string::npos) << text;
  EXPECT_NE(text.find("(30 %)"), std::string::npos) << "3000 in 10 us of 1 GFLOP/s\n" << text;
  auto sums = nlohmann::json::parse(profile.json()).at("modes").at(0).at("sums");
  for (const auto& sum : sums) {
    EXPECT_EQ(sum.at("bytes").is_null(), sum.at("op") == "aten::topk");
    EXPECT_EQ(sum.at("gain_ms").is_null(), sum.at("op") == "aten::topk");
  }
  profile.modes.front().limits = {.problem = "out of memory"};
  EXPECT_NE(profile.text().find("limits of cuda:0 not known: out of memory"), std::string::npos);
}

TEST(Limits, of_the_cpu_are_measured_where_they_are_asked_for) {
  const at::Tensor x = at::ones({8, 8});
  const auto step = [&] { (void)at::mm(x, x); };
  const Profile measured = sinter::profile(step, {.steps = 1})();
  const DeviceLimits& limits = measured.modes.front().limits;
  EXPECT_GT(limits.bandwidth, 0);
  ASSERT_EQ(limits.peaks.size(), 1U);
  EXPECT_EQ(limits.peaks[0].dtype, "f32");
  EXPECT_GT(limits.peaks[0].flops, 0);
  const Profile without = sinter::profile(step, {.steps = 1, .limits = false})();
  EXPECT_EQ(without.modes.front().limits.bandwidth, 0);
  EXPECT_FALSE(without.modes.front().limits.problem.empty());
}

}  // namespace
}  // namespace sinter::test
