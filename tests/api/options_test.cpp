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
  const auto text = user_error([&] { return compile(model, trusted({.modules = {{"other", model.ptr()}}})); });
  EXPECT_EQ(text.find("modules: the callable is a module itself"), 0) << text;
}

TEST_F(OptionsOf, a_missing_or_repeated_module_or_one_of_several_without_a_name_is_a_user_error) {
  ConvBnRelu model;
  ConvBnRelu other;
  EXPECT_NE(
      user_error([&] { return compile(erf_gelu, trusted({.modules = {{"", model.ptr()}, {"b", other.ptr()}}})); }), "");
  EXPECT_NE(user_error([&] { return compile(erf_gelu, trusted({.modules = {{"a", nullptr}}})); }), "");
  EXPECT_NE(
      user_error([&] { return compile(erf_gelu, trusted({.modules = {{"a", model.ptr()}, {"a", model.ptr()}}})); }),
      "");
  EXPECT_NE(user_error([&] { return compile(std::shared_ptr<ConvBnReluImpl>(), trusted()); }), "");
}

TEST_F(OptionsOf, a_single_module_without_a_name_names_its_parts_alone) {
  ConvBnRelu model;
  model->eval();
  auto fast = compile([model](const at::Tensor& x) mutable { return model->forward(x); },
                      trusted({.modules = {{"", model.ptr()}}}));
  fast(at::randn({1, 3, 4, 4}));
  const auto text = fast.report().text();
  EXPECT_NE(text.find("bn"), std::string::npos) << text;
  EXPECT_EQ(text.find(".bn"), std::string::npos) << text;
}

TEST_F(OptionsOf, a_verify_period_below_one_is_a_user_error) {
  EXPECT_NE(user_error([&] { return compile(erf_gelu, trusted({.verify = 0})); }), "");
  EXPECT_NE(user_error([&] { return compile(erf_gelu, trusted({.verify = -7})); }), "");
}

TEST_F(OptionsOf, verify_every_third_call_captures_and_compares_those) {
  auto fast = compile(erf_gelu, trusted({.verify = 3}));
  for (int call = 0; call < 9; ++call) fast(at::ones({8}));
  std::vector<int64_t> calls;
  const auto report = fast.report();
  for (const auto& check : report.entries[0].verifications) calls.push_back(check.call);
  EXPECT_EQ(calls, (std::vector<int64_t>{2, 3, 6, 9}));
  EXPECT_TRUE(unbroken(fast.report()));
}

TEST_F(OptionsOf, verify_off_replays_from_the_second_call_on) {
  auto fast = compile(erf_gelu, trusted({.verify = Verify::off}));
  for (int call = 0; call < 9; ++call) fast(at::ones({8}));
  EXPECT_EQ(replays(fast.report()), 8);
}

TEST_F(OptionsOf, modules_give_names_and_train_flags_to_a_lambda) {
  ConvBnRelu model;
  model->eval();
  auto fast = compile([model](const at::Tensor& x) mutable { return model->forward(x); },
                      trusted({.modules = {{"net", model.ptr()}}}));
  fast(at::randn({1, 3, 4, 4}));
  EXPECT_NE(fast.report().text().find("net.bn"), std::string::npos) << fast.report();
  model->bn->train();
  fast(at::randn({1, 3, 4, 4}));
  EXPECT_EQ(fast.report().entries[1].because[0].guard, "module net.bn");
}

TEST_F(OptionsOf, max_autotune_says_that_it_does_what_reduce_overhead_does) {
  auto fast = compile(erf_gelu, trusted({.mode = Mode::MaxAutotune}));
  ASSERT_EQ(fast.report().notes.size(), 1);
  EXPECT_EQ(fast.report().mode, "max-autotune");
}

TEST_F(OptionsOf, names_come_from_the_option_the_module_or_the_kind) {
  EXPECT_EQ(compile(erf_gelu, trusted({.name = "mine"})).report().function, "mine");
  EXPECT_EQ(compile(ConvBnRelu(), trusted()).report().function, "ConvBnRelu");
  EXPECT_EQ(compile([](const at::Tensor& x) { return x; }, trusted()).report().function, "lambda");
  EXPECT_EQ(compile(&erf_gelu, trusted()).report().function, "function");
}

}  // namespace
}  // namespace sinter::test
