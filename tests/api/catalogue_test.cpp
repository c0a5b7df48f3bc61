#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "api_test.h"

/// The catalogue of breaks, docs/trusted-replay.md: every code is provoked, and gone once its hint is followed.
namespace sinter::test {
namespace {

/// Two programs: one that breaks, and the same as the break's hint asks for. Each gives its report.
struct Row {
  BreakCode code;
  const char* hint;  ///< what the break must say
  Report (*provoke)();
  Report (*follow)();
};

/// Four calls on fresh data.
template <class Callable>
Report called(Callable callable, const std::vector<int64_t>& sizes = {4, 4}) {
  auto fast = compile(std::move(callable), trusted());
  for (int call = 0; call < 4; ++call) (void)fast(at::randn(sizes));
  return fast.report();
}

Report in_grad_mode(bool grad) {
  const at::AutoGradMode mode(grad);
  return called(torch::nn::Linear(4, 4));
}

Report counting(bool as_argument) {
  if (!as_argument) return called([steps = 0](const at::Tensor& x) mutable { return x * ++steps; });
  auto fast = compile([](const at::Tensor& x, const at::Tensor& steps) { return x * steps; }, trusted());
  for (int call = 0; call < 4; ++call) (void)fast(at::randn({4}), at::full({}, call));
  return fast.report();
}

Report foreign(bool wrapped) {
  struct Settings {
    double factor;
  };
  const auto x = at::randn({4});
  if (wrapped) {
    auto fast = compile([](const at::Tensor& t, const Settings& s) { return t * s.factor; }, trusted());
    for (int call = 0; call < 4; ++call) (void)fast(x, Settings{2});
    return fast.report();
  }
  auto fast = compile([](const at::Tensor& t, double factor) { return t * factor; }, trusted());
  for (int call = 0; call < 4; ++call) (void)fast(x, 2.0);
  return fast.report();
}

/// Two courses may be kept: enough for the two values of a bool.
Report branching(bool compared_on_the_device) {
  const auto program = [compared_on_the_device](const at::Tensor& x) {
    const at::Tensor sum = x.sum();
    const bool positive = compared_on_the_device ? (sum > 0).item<bool>() : sum.item<float>() > 0;
    return positive ? x + 1 : x - 1;
  };
  auto fast = compile(program, trusted({.max_paths = 2}));
  for (int call = 0; call < 8; ++call) (void)fast(at::full({4}, call % 2 == 0 ? call + 1 : -call));
  return fast.report();
}

const Row rows[] = {
    {BreakCode::needs_gradient, "NoGradGuard", [] { return in_grad_mode(true); }, [] { return in_grad_mode(false); }},
    {BreakCode::input_mutation, "make a view instead",
     [] { return called([](const at::Tensor& x) { return x.t_() * 2; }, {3, 4}); },
     [] { return called([](const at::Tensor& x) { return x.t() * 2; }, {3, 4}); }},
    {BreakCode::state_mutation, "keep it outside",
     [] {
       return called([kept = at::Tensor()](const at::Tensor& x) mutable {
         kept = x + 1;
         return kept * 2;
       });
     },
     [] {
       return called([](const at::Tensor& x) {
         const auto kept = x + 1;
         return std::vector<at::Tensor>{kept, kept * 2};
       });
     }},
    {BreakCode::host_read, "compare on the device", [] { return branching(false); }, [] { return branching(true); }},
    {BreakCode::unsupported_op, "write to the tensor that was expanded",
     [] { return called([](const at::Tensor& x) { return x.clone().unfold(0, 2, 1).mul_(0.5); }); },
     [] { return called([](const at::Tensor& x) { return x.clone().mul_(0.5).unfold(0, 2, 1); }); }},
    {BreakCode::unsupported_input, "scalars", [] { return foreign(true); }, [] { return foreign(false); }},
    {BreakCode::unstable, "argument", [] { return counting(false); }, [] { return counting(true); }},
};

class Catalogue : public ::testing::TestWithParam<Row> {
 private:
  c10::NoGradGuard no_grad_;
};

TEST_P(Catalogue, a_break_is_provoked_and_says_what_to_do) {
  const auto report = GetParam().provoke();
  const auto found = only_break(report);
  EXPECT_STREQ(name(found.code), name(GetParam().code)) << report;
  EXPECT_NE(found.hint.find(GetParam().hint), std::string::npos) << report;
}

TEST_F(Api, a_break_says_what_it_costs) {
  const auto report = called([](const at::Tensor& x) { return x.relu().sum(0).to_sparse().to_dense(); });
  EXPECT_NE(report.text().find("cost: at least 2 ATen calls a call"), std::string::npos) << report;
  EXPECT_NE(report.json().find("\"launched_calls\": 2"), std::string::npos) << report.json();
}

TEST_P(Catalogue, following_the_hint_makes_it_go_away) {
  const auto report = GetParam().follow();
  EXPECT_TRUE(unbroken(report));
  EXPECT_GT(replays(report), 0) << report;
}

std::string title(const ::testing::TestParamInfo<Row>& instance) {
  std::string text = name(instance.param.code);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Breaks, Catalogue, ::testing::ValuesIn(rows), title);

/// Every code there is: names end where the enumeration does.
std::vector<std::string> codes() {
  std::vector<std::string> all;
  for (int i = 0; std::string(name(static_cast<BreakCode>(i))) != "unknown"; ++i) {
    all.emplace_back(name(static_cast<BreakCode>(i)));
  }
  return all;
}

TEST(CatalogueOfBreaks, provokes_every_code) {
  // A failure of Sinter itself is provoked where a process can be started with a fault: tests/command/fault_test.cpp.
  std::set<std::string> provoked{name(BreakCode::compile_failed)};
  for (const auto& row : rows) provoked.insert(name(row.code));
  for (const auto& code : codes()) EXPECT_TRUE(provoked.contains(code)) << code;
}

TEST(CatalogueOfBreaks, has_a_section_for_every_code) {
  const std::filesystem::path page = std::string(SINTER_DOCS) + "/trusted-replay.md";
  if (!std::filesystem::exists(page)) GTEST_SKIP() << "the sources are not here";
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  for (const auto& code : codes()) EXPECT_NE(text.str().find("## " + code + "\n"), std::string::npos) << code;
}

}  // namespace
}  // namespace sinter::test
