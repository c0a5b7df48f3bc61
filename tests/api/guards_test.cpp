#include <c10/core/DefaultDtype.h>

#include "api_test.h"

namespace sinter::test {
namespace {

using Guards = Api;

/// Names of what made the last entry necessary.
std::vector<std::string> because(const Report& report) {
  std::vector<std::string> names;
  for (const auto& miss : report.entries.back().because) names.push_back(miss.guard);
  return names;
}

TEST_F(Guards, a_new_batch_size_compiles_a_second_entry_and_names_the_dimension) {
  auto fast = compile(erf_gelu, trusted());
  for (const int64_t batch : {1, 8}) {
    const auto x = at::randn({batch, 16});
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), erf_gelu(x)));
  }
  const auto report = fast.report();
  ASSERT_EQ(report.entries.size(), 2);
  const auto& misses = report.entries[1].because;
  ASSERT_FALSE(misses.empty()) << report;
  EXPECT_EQ(misses[0].guard, "input 0: size[0]");
  EXPECT_EQ(misses[0].was, "1");
  EXPECT_EQ(misses[0].is, "8");
}

TEST_F(Guards, a_dtype_a_stride_and_a_rank_each_get_an_entry_of_their_own) {
  auto fast = compile(erf_gelu, trusted());
  const auto x = at::randn({4, 6});
  for (int round = 0; round < 3; ++round) {
    for (const auto& input : {x, x.to(at::kDouble), x.t(), x.flatten()})
      ASSERT_TRUE(same(fast(input), erf_gelu(input)));
  }
  EXPECT_EQ(fast.report().entries.size(), 4);
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(Guards, a_better_aligned_input_passes_and_a_worse_one_does_not) {
  auto fast = compile(erf_gelu, trusted());
  const auto storage = at::randn({257});
  const auto shifted = storage.slice(0, 1);
  fast(shifted);
  fast(storage.slice(0, 0, 256));
  EXPECT_EQ(fast.report().entries.size(), 1);
  auto other = compile(erf_gelu, trusted());
  other(storage.slice(0, 0, 256));
  ASSERT_TRUE(same(other(shifted), erf_gelu(shifted)));
  ASSERT_EQ(other.report().entries.size(), 2);
  EXPECT_EQ(because(other.report()).front(), "input 0: alignment");
}

TEST_F(Guards, scalars_and_strings_are_guarded_by_value) {
  auto fast = compile(
      [](const at::Tensor& x, double factor, const std::string& how) { return how == "add" ? x + factor : x * factor; },
      trusted());
  const auto x = at::randn({10});
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(same(fast(x, 2.0, "add"), x + 2.0));
    EXPECT_TRUE(same(fast(x, 3.0, "add"), x + 3.0));
    EXPECT_TRUE(same(fast(x, 3.0, std::string("mul")), x * 3.0));
  }
  const auto report = fast.report();
  ASSERT_EQ(report.entries.size(), 3);
  EXPECT_EQ(report.entries[1].because[0].guard, "argument 1");
  EXPECT_EQ(report.entries[2].because[0].guard, "argument 2");
  EXPECT_EQ(report.entries[2].because[0].is, "\"mul\"");
}

TEST_F(Guards, grad_mode_and_inference_mode_are_part_of_the_key) {
  auto fast = compile(erf_gelu, trusted());
  const auto x = at::randn({10});
  fast(x);
  {
    const at::AutoGradMode grad(true);
    fast(x);
  }
  {
    const c10::InferenceMode inference;
    fast(x);
  }
  EXPECT_EQ(fast.report().entries.size(), 3) << fast.report();
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(Guards, the_default_dtype_is_part_of_the_key) {
  auto fast = compile([](const at::Tensor& x) { return x / 2; }, trusted());
  const auto x = at::arange(10);
  EXPECT_EQ(fast(x).scalar_type(), at::kFloat);
  c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  EXPECT_EQ(fast(x).scalar_type(), at::kDouble);
  c10::set_default_dtype(caffe2::TypeMeta::Make<float>());
  EXPECT_EQ(fast(x).scalar_type(), at::kFloat);
  EXPECT_EQ(because(fast.report()).front(), "default dtype");
}

TEST_F(Guards, autocast_is_part_of_the_key) {
  const auto weight = at::randn({8, 8});
  auto fast = compile([weight](const at::Tensor& x) { return at::matmul(x, weight); }, trusted());
  const auto x = at::randn({4, 8});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(fast(x).scalar_type(), at::kFloat);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    EXPECT_EQ(fast(x).scalar_type(), at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
  EXPECT_EQ(fast.report().entries.size(), 2) << fast.report();
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(Guards, the_train_flag_of_every_submodule_is_watched) {
  ConvBnRelu model;
  model->eval();
  auto fast = compile(model, trusted());
  const auto x = at::randn({2, 3, 8, 8});
  fast(x);
  fast(x);
  model->conv->train();
  ASSERT_TRUE(same(fast(x), model->forward(x)));
  EXPECT_EQ(because(fast.report()).front(), "module conv");
}

/// Says itself whether it trains.
struct Moody : torch::nn::Module {
  bool trains = false;

  [[nodiscard]] bool is_training() const noexcept override { return trains; }
  at::Tensor forward(const at::Tensor& x) { return is_training() ? x * 2 : x + 1; }
};

TEST_F(Guards, a_module_that_says_itself_whether_it_trains_is_asked) {
  const auto model = std::make_shared<Moody>();
  auto fast = compile(model, trusted({.verify = Verify::off}));
  const auto x = at::randn({4});
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x + 1));
  ASSERT_GT(replays(fast.report()), 0);
  model->trains = true;
  ASSERT_TRUE(same(fast(x), x * 2));
  EXPECT_EQ(because(fast.report()).front(), "module");
  model->train();  // what Module keeps does not count
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * 2));
  EXPECT_EQ(fast.report().entries.size(), 2);
}

TEST_F(Guards, two_inputs_that_start_to_share_memory_are_another_case) {
  auto fast = compile([](const at::Tensor& a, const at::Tensor& b) { return a + b; }, trusted());
  const auto a = at::randn({8});
  const auto b = at::randn({8});
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(same(fast(a, b), a + b));
    EXPECT_TRUE(same(fast(a, a), a + a));
  }
  EXPECT_EQ(fast.report().entries.size(), 2);
  EXPECT_EQ(because(fast.report()).front(), "input 1: memory");
}

TEST_F(Guards, the_same_tensor_twice_is_told_from_a_view_of_it) {
  const auto program = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b) ? a + 1 : b * 2; };
  auto fast = compile(program, trusted({.verify = Verify::off}));
  const auto a = at::randn({8});
  const auto view = a.view_as(a);
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(same(fast(a, a), a + 1));
    EXPECT_TRUE(same(fast(a, view), a * 2));
  }
  EXPECT_EQ(fast.report().entries.size(), 2);
  EXPECT_EQ(because(fast.report()).front(), "input 1: memory");
}

TEST_F(Guards, of_three_arguments_in_the_same_memory_it_matters_which_are_one_tensor) {
  const auto program = [](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    return b.is_same(c) ? a + 1 : c * 2;
  };
  auto fast = compile(program, trusted({.verify = Verify::off}));
  const auto a = at::randn({8});
  const auto b = a.view_as(a);
  const auto c = a.view_as(a);
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(same(fast(a, b, b), a + 1));
    EXPECT_TRUE(same(fast(a, b, c), a * 2));
  }
  EXPECT_EQ(fast.report().entries.size(), 2);
}

TEST_F(Guards, a_modules_own_weight_as_argument_is_guarded_by_identity) {
  torch::nn::Linear layer(4, 4);
  auto fast = compile([layer](const at::Tensor& x) mutable { return x * layer->weight; },
                      trusted({.modules = {{"layer", layer.ptr()}}}));
  const auto other = at::randn({4, 4});
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(layer->weight), layer->weight * layer->weight));
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same(fast(other), other * layer->weight));
}

TEST_F(Guards, small_state_that_the_host_reads_is_guarded_by_value) {
  const auto scale = at::ones({});
  auto fast = compile([scale](const at::Tensor& x) { return x * scale.item<float>(); }, trusted());
  const auto x = at::ones({4});
  for (const float value : {1.F, 2.F, 1.F}) {
    scale.fill_(value);
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same(fast(x), x * value));
  }
  const auto report = fast.report();
  ASSERT_EQ(report.entries.size(), 2) << report;
  EXPECT_TRUE(unbroken(report));
  EXPECT_EQ(because(report), std::vector<std::string>{"state closure.0: value"});
}

TEST_F(Guards, after_sixteen_entries_further_shapes_run_eagerly_and_the_report_says_so) {
  auto fast = compile(erf_gelu, trusted({.dynamic = false}));
  for (int64_t size = 1; size <= 18; ++size) {
    const auto x = at::randn({size});
    ASSERT_TRUE(same(fast(x), erf_gelu(x)));
  }
  const auto report = fast.report();
  EXPECT_EQ(report.entries.size(), 16);
  ASSERT_EQ(report.notes.size(), 1);
  EXPECT_EQ(report.notes[0], "16 combinations of guards are compiled; others run eagerly");
}

}  // namespace
}  // namespace sinter::test
