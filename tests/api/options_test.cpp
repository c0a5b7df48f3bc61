#include <limits>

#include "api_test.h"

namespace sinter::test {
namespace {

using OptionsOf = Api;

template <class F>
std::string user_error(F&& make) {
  try {
    make();
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

TEST_F(OptionsOf, modules_beside_a_module_is_a_user_error) {
  ConvBnRelu model;
  const auto text = user_error([&] { return compile(model, {.modules = {{"other", model.ptr()}}}); });
  EXPECT_EQ(text.find("modules: the callable is a module itself"), 0) << text;
}

TEST_F(OptionsOf, a_missing_or_repeated_module_or_one_of_several_without_a_name_is_a_user_error) {
  ConvBnRelu model;
  ConvBnRelu other;
  EXPECT_NE(user_error([&] { return compile(erf_gelu, {.modules = {{"", model.ptr()}, {"b", other.ptr()}}}); }), "");
  EXPECT_NE(user_error([&] { return compile(erf_gelu, {.modules = {{"a", nullptr}}}); }), "");
  EXPECT_NE(user_error([&] { return compile(erf_gelu, {.modules = {{"a", model.ptr()}, {"a", model.ptr()}}}); }), "");
  EXPECT_NE(user_error([&] { return compile(std::shared_ptr<ConvBnReluImpl>()); }), "");
}

TEST_F(OptionsOf, a_time_that_is_none_is_a_user_error) {
  for (const double seconds : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_NE(user_error([&] { return compile(erf_gelu, {.autotune_seconds = seconds}); }).find("autotune_seconds"),
              std::string::npos);
  }
}

TEST_F(OptionsOf, max_autotune_measures_nothing_on_the_cpu) {
  const at::NoGradGuard no_grad;
  const at::Tensor weight = at::randn({64, 64}, at::kHalf);
  const auto run = [&](const at::Tensor& x) { return x.mm(weight).relu(); };
  auto fast = compile(run, unlimited({.mode = Mode::MaxAutotune, .strict = true}));
  for (int call = 0; call < 4; ++call) {
    const at::Tensor x = at::randn({128, 64}, at::kHalf);
    EXPECT_TRUE(same(fast(x), run(x)));
  }
  EXPECT_GT(fast.stats().replayed, 0);
  EXPECT_EQ(fast.report().mode, "max-autotune");
  for (const EntryReport& entry : fast.report().entries) EXPECT_TRUE(entry.choices.empty()) << fast.report();
}

TEST_F(OptionsOf, a_single_module_without_a_name_names_its_parts_alone) {
  ConvBnRelu model;
  model->eval();
  auto fast =
      compile([model](const at::Tensor& x) mutable { return model->forward(x); }, {.modules = {{"", model.ptr()}}});
  for (int call = 0; call < 2; ++call) fast(at::randn({1, 3, 4, 4}));
  const auto text = fast.report().text();
  EXPECT_NE(text.find("bn"), std::string::npos) << text;
  EXPECT_EQ(text.find(".bn"), std::string::npos) << text;
}

TEST_F(OptionsOf, modules_give_names_to_a_lambda) {
  ConvBnRelu model;
  model->eval();
  auto fast =
      compile([model](const at::Tensor& x) mutable { return model->forward(x); }, {.modules = {{"net", model.ptr()}}});
  for (int call = 0; call < 2; ++call) fast(at::randn({1, 3, 4, 4}));
  EXPECT_NE(fast.report().text().find("net.bn"), std::string::npos) << fast.report();
}

TEST_F(OptionsOf, names_come_from_the_option_the_module_or_the_kind) {
  EXPECT_EQ(compile(erf_gelu, {.name = "mine"}).report().function, "mine");
  EXPECT_EQ(compile(ConvBnRelu()).report().function, "ConvBnRelu");
  EXPECT_EQ(compile([](const at::Tensor& x) { return x; }).report().function, "lambda");
  EXPECT_EQ(compile(&erf_gelu).report().function, "function");
}

}  // namespace
}  // namespace sinter::test
