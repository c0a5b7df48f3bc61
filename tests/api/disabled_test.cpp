#include <cstdlib>

#include "api_test.h"

// Options::enabled = false and SINTER_DISABLE: calls go straight to the callable.
namespace sinter::test {
namespace {

using Disabled = Api;

/// Counts how often it is copied.
struct Copied {
  explicit Copied(int* counter) : copies(counter) {}
  Copied(const Copied& other) : copies(other.copies) { ++*copies; }
  Copied(Copied&&) = default;
  int* copies;
};

TEST_F(Disabled, every_call_runs_the_callable_and_its_operators) {
  int runs = 0;
  int computed = 0;
  const auto program = [&](const at::Tensor& x) {
    ++runs;
    const auto y = erf_gelu(x);
    computed += y.storage().data() != nullptr ? 1 : 0;
    return y;
  };
  auto off = compile(program, {.enabled = false});
  const auto x = at::randn({8});
  for (int call = 0; call < 9; ++call) EXPECT_TRUE(at::equal(off(x), erf_gelu(x)));
  EXPECT_EQ(runs, 9);
  EXPECT_EQ(computed, 9) << "what is answered from a recording has no memory yet";
}

TEST_F(Disabled, arguments_and_results_pass_as_they_are) {
  int copies = 0;
  const auto program = [](Copied value, at::Tensor& x, std::unique_ptr<int> number) {
    x = x + *number;
    return std::pair<Copied, std::unique_ptr<int>>(std::move(value), std::move(number));
  };
  auto off = compile(program, {.enabled = false});
  auto x = at::ones({4});
  const auto result = off(Copied(&copies), x, std::make_unique<int>(3));
  EXPECT_EQ(copies, 0);
  EXPECT_EQ(*result.second, 3);
  EXPECT_TRUE(at::equal(x, at::full({4}, 4.0)));
}

TEST_F(Disabled, void_callables_references_and_modules_are_called) {
  int runs = 0;
  compile([&] { ++runs; }, {.enabled = false})();
  EXPECT_EQ(runs, 1);

  const auto kept = at::randn({4});
  auto reference = compile([&](int) -> const at::Tensor& { return kept; }, {.enabled = false});
  EXPECT_TRUE(reference(1).is_same(kept));

  ConvBnRelu model;
  model->eval();
  const auto x = at::randn({1, 3, 4, 4});
  EXPECT_TRUE(at::equal(compile(model, {.enabled = false})(x), model->forward(x)));
}

TEST_F(Disabled, no_other_option_has_an_effect) {
  int events = 0;
  auto off =
      compile([](const at::Tensor& x) { return x.to_sparse().to_dense(); },
              {.fullgraph = true, .strict = true, .enabled = false, .on_event = [&](const Event&) { ++events; }});
  EXPECT_NO_THROW(off(at::ones({8})));
  EXPECT_EQ(events, 0);
}

TEST_F(Disabled, the_report_says_by_what_and_nothing_is_counted) {
  auto off = compile(erf_gelu, {.mode = Mode::ReduceOverhead, .enabled = false});
  off(at::ones({4}));
  const auto report = off.report();
  EXPECT_EQ(report.mode, "disabled");
  EXPECT_TRUE(report.entries.empty());
  ASSERT_EQ(report.notes.size(), 1);
  EXPECT_EQ(report.notes[0], "Options::enabled is false: calls go straight to the callable");
  EXPECT_EQ(off.stats(), Stats{});
  off.reset();
  EXPECT_TRUE(at::equal(off(at::ones({4})), erf_gelu(at::ones({4}))));
}

TEST_F(Disabled, options_are_checked_all_the_same) {
  ConvBnRelu model;
  EXPECT_THROW((void)compile(model, {.modules = {{"other", model.ptr()}}, .enabled = false}), UserError);
}

TEST_F(Disabled, inside_an_enabled_function_its_operators_are_recorded_as_the_callables_own) {
  auto inner = compile(erf_gelu, {.enabled = false});
  auto outer = compile([inner](const at::Tensor& x) { return inner(x) + 1; }, unlimited());
  const auto x = at::randn({8});
  for (int call = 0; call < 4; ++call) EXPECT_TRUE(same(outer(x), erf_gelu(x) + 1));
  EXPECT_TRUE(unbroken(outer.report()));
  EXPECT_GT(outer.stats().replayed, 0);
}

/// What a function does in this process.
int code_of(bool disabled_as_expected) { return disabled_as_expected ? 0 : 1; }

/// The variable is read once, so that each value has a process of its own.
class DisabledByEnvironmentDeathTest : public Api {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static bool is_disabled_by(const char* value) {
    ::setenv("SINTER_DISABLE", value, 1);
    auto fast = compile(erf_gelu, unlimited());
    const auto x = at::randn({8});
    for (int call = 0; call < 3; ++call) {
      if (!same(fast(x), erf_gelu(x))) std::abort();
    }
    const auto report = fast.report();
    const bool says_so =
        report.notes == std::vector<std::string>{"SINTER_DISABLE is set: calls go straight to the callable"};
    return says_so && fast.stats().calls == 0;
  }
};

TEST_F(DisabledByEnvironmentDeathTest, one_turns_every_function_off) {
  EXPECT_EXIT(std::_Exit(code_of(is_disabled_by("1"))), ::testing::ExitedWithCode(0), "");
}

TEST_F(DisabledByEnvironmentDeathTest, nought_and_nothing_do_not) {
  EXPECT_EXIT(std::_Exit(code_of(!is_disabled_by("0"))), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::_Exit(code_of(!is_disabled_by(""))), ::testing::ExitedWithCode(0), "");
}

TEST_F(DisabledByEnvironmentDeathTest, it_is_read_once) {
  const auto read_twice = [] {
    const bool first = is_disabled_by("1");
    return first && is_disabled_by("0");
  };
  EXPECT_EXIT(std::_Exit(code_of(read_twice())), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sinter::test
