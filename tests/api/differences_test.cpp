#include <c10/core/DefaultDtype.h>
#include <torch/nn/modules/dropout.h>

#include <functional>

#include "api_test.h"

/// Everything in which a call can differ from those before it: what it is given, the modes it runs under, the modules
/// that it finds.
namespace sinter::test {
namespace {

using Differences = Api;

TEST_F(Differences, another_batch_size_is_a_branch_that_names_what_differs) {
  auto fast = compile([](const at::Tensor& x) { return at::relu(x) + 1; }, unlimited());
  for (const int64_t batch : {1, 8}) {
    const auto x = at::randn({batch, 16});
    for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), at::relu(x) + 1));
  }
  const auto report = fast.report();
  EXPECT_EQ(report.entries.size(), 2) << report;
  EXPECT_EQ(fast.stats().recompilations, 1);
  EXPECT_NE(report.text().find("another branch: operator 1, aten::relu was f32[1,16], is f32[8,16]"), std::string::npos)
      << report;
  EXPECT_EQ(fast.stats().replayed, 4);
}

TEST_F(Differences, dtypes_strides_and_ranks) {
  auto fast = compile(erf_gelu, unlimited());
  const auto x = at::randn({4, 6});
  for (int round = 0; round < 3; ++round) {
    for (const auto& input : {x, x.to(at::kDouble), x.t(), x.flatten()})
      ASSERT_TRUE(same(fast(input), erf_gelu(input)));
  }
  EXPECT_EQ(fast.stats().replayed, 8);
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(Differences, alignments) {
  const auto storage = at::randn({257});
  const auto aligned = storage.slice(0, 0, 256), shifted = storage.slice(0, 1);
  for (const auto& [first, second] : {std::pair(aligned, shifted), std::pair(shifted, aligned)}) {
    auto fast = compile(erf_gelu, unlimited());
    for (const auto& x : {first, first, second, second, first, second}) ASSERT_TRUE(same(fast(x), erf_gelu(x)));
    EXPECT_GE(fast.stats().replayed, 4) << fast.report();
  }
}

TEST_F(Differences, scalars_and_strings) {
  auto fast = compile(
      [](const at::Tensor& x, double factor, const std::string& how) { return how == "add" ? x + factor : x * factor; },
      unlimited());
  const auto x = at::randn({10});
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(same(fast(x, 2.0, "add"), x + 2.0));
    EXPECT_TRUE(same(fast(x, 3.0, "add"), x + 3.0));
    EXPECT_TRUE(same(fast(x, 3.0, std::string("mul")), x * 3.0));
  }
  EXPECT_GE(fast.stats().replayed, 5) << fast.report();
}

TEST_F(Differences, grad_mode_and_inference_mode) {
  auto fast = compile(erf_gelu, unlimited());
  const auto x = at::randn({10});
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(fast(x).is_inference());
    {
      const at::AutoGradMode grad(true);
      EXPECT_TRUE(same(fast(x), erf_gelu(x)));
    }
    const c10::InferenceMode inference;
    EXPECT_TRUE(fast(x).is_inference());
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 5) << fast.report();
}

TEST_F(Differences, the_default_dtype) {
  auto fast = compile([](const at::Tensor& x) { return at::relu(x / 2) + 1; }, unlimited());
  const auto x = at::arange(100);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(fast(x).scalar_type(), at::kFloat);
    c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
    EXPECT_EQ(fast(x).scalar_type(), at::kDouble);
    c10::set_default_dtype(caffe2::TypeMeta::Make<float>());
    EXPECT_EQ(fast(x).scalar_type(), at::kFloat);
  }
  EXPECT_GE(fast.stats().replayed, 5) << fast.report();
}

TEST_F(Differences, autocast) {
  const auto weight = at::randn({8, 8});
  auto fast = compile([weight](const at::Tensor& x) { return at::matmul(x, weight); }, unlimited());
  const auto x = at::randn({4, 8});
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(fast(x).scalar_type(), at::kFloat);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    EXPECT_EQ(fast(x).scalar_type(), at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
  EXPECT_TRUE(unbroken(fast.report()));
  EXPECT_GE(fast.stats().replayed, 4) << fast.report();
}

TEST_F(Differences, training_and_evaluation_of_a_part_of_a_module) {
  ConvBnRelu model;
  ConvBnRelu eager;
  for (size_t i = 0; i < model->parameters().size(); ++i) eager->parameters()[i].copy_(model->parameters()[i]);
  auto fast = compile(model, unlimited());
  for (int call = 0; call < 16; ++call) {
    model->bn->train(call % 4 == 3);
    eager->bn->train(call % 4 == 3);
    const auto x = at::randn({2, 3, 8, 8});
    ASSERT_TRUE(same(fast(x), eager->forward(x), 1e-4)) << call;
    ASSERT_TRUE(same(model->bn->running_mean, eager->bn->running_mean)) << call;
  }
  EXPECT_GE(fast.stats().replayed, 10) << fast.report();
}

struct Agent {
  torch::nn::Dropout dropout;
};

/// Switches `dropout` to eval after three calls, and back.
template <class Callable>
void see_eval(torch::nn::Dropout& dropout, const Callable& callable) {
  auto fast = compile(callable, unlimited());
  const auto x = at::ones({64});
  for (int round = 0; round < 2; ++round) {
    for (int call = 0; call < 3; ++call) EXPECT_FALSE(at::equal(fast(x), x));
    dropout->eval();
    for (int call = 0; call < 3; ++call) EXPECT_TRUE(at::equal(fast(x), x));
    dropout->train();
  }
  EXPECT_FALSE(at::equal(fast(x), x));
}

TEST_F(Differences, training_and_evaluation_of_modules_however_the_callable_gets_at_them) {
  torch::nn::Dropout dropout(0.5);
  see_eval(dropout, [dropout](const at::Tensor& x) mutable { return dropout->forward(x); });
  see_eval(dropout, [&dropout](const at::Tensor& x) { return dropout->forward(x); });
  see_eval(dropout, [&](const at::Tensor& x) { return at::dropout(x, 0.5, dropout->is_training()); });
  see_eval(dropout, [agent = Agent{dropout}](const at::Tensor& x) mutable { return agent.dropout->forward(x); });
  see_eval(dropout, [module = dropout.get()](const at::Tensor& x) { return module->forward(x); });
  see_eval(dropout, std::function<at::Tensor(const at::Tensor&)>([&dropout](const auto& x) { return dropout(x); }));
}

/// Says itself whether it trains.
struct Moody : torch::nn::Module {
  bool trains = false;

  [[nodiscard]] bool is_training() const noexcept override { return trains; }
  at::Tensor forward(const at::Tensor& x) { return is_training() ? x * 2 : x + 1; }
};

TEST_F(Differences, a_module_that_says_itself_whether_it_trains) {
  const auto model = std::make_shared<Moody>();
  auto fast = compile(model, unlimited());
  const auto x = at::randn({4});
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x + 1));
  model->trains = true;
  ASSERT_TRUE(same(fast(x), x * 2));
  model->train();  // what Module keeps does not count
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(same(fast(x), x * 2));
  EXPECT_EQ(fast.stats().replayed, 5) << fast.report();
}

TEST_F(Differences, inputs_that_start_to_share_memory) {
  const auto program = [](const at::Tensor& a, const at::Tensor& b) {
    a.add_(1);
    return a + b;
  };
  auto fast = compile(program, unlimited());
  for (int call = 0; call < 4; ++call) {
    const auto a = at::randn({8}), b = at::randn({8}), c = at::randn({8});
    const auto a_now = a.clone(), c_now = c.clone();
    EXPECT_TRUE(same(fast(a, b), program(a_now, b)));
    EXPECT_TRUE(same(a, a_now));
    EXPECT_TRUE(same(fast(c, c), program(c_now, c_now)));
    EXPECT_TRUE(same(c, c_now));
  }
  EXPECT_GE(fast.stats().replayed, 4);
}

TEST_F(Differences, the_same_tensor_twice_is_told_from_a_view_of_it) {
  const auto program = [](const at::Tensor& a, const at::Tensor& b) { return a.is_same(b) ? a + 1 : b * 2; };
  auto fast = compile(program, unlimited());
  const auto a = at::randn({8});
  const auto view = a.view_as(a);
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(same(fast(a, a), a + 1));
    EXPECT_TRUE(same(fast(a, view), a * 2));
  }
  EXPECT_EQ(fast.stats().replayed, 4);
}

TEST_F(Differences, of_three_arguments_in_the_same_memory_it_matters_which_are_one_tensor) {
  const auto program = [](const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
    return b.is_same(c) ? a + 1 : c * 2;
  };
  auto fast = compile(program, unlimited());
  const auto a = at::randn({8});
  const auto b = a.view_as(a);
  const auto c = a.view_as(a);
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(same(fast(a, b, b), a + 1));
    EXPECT_TRUE(same(fast(a, b, c), a * 2));
  }
  EXPECT_EQ(fast.stats().replayed, 4);
}

}  // namespace
}  // namespace sinter::test
