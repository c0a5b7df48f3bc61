#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "small_models.h"

namespace sinter::test {
namespace {

using Json = nlohmann::json;

/// Named by whoever writes the model: everything but dots is allowed.
struct OddlyNamed : torch::nn::Module {
  OddlyNamed() { weight = register_parameter("weight", at::ones({4})); }
  at::Tensor weight;
};

TEST(Profile, json_and_trace_hold_every_operator_whatever_modules_are_called) {
  const std::string odd = "a\"<b>&'\\\n\xff</script>";
  const auto module = std::make_shared<OddlyNamed>();
  const Profile profile = sinter::profile([&](const at::Tensor& x) { return x + module->weight; },
                                          {.steps = 2, .modules = {{odd, module}}, .name = odd})(at::ones({4}));
  const Json whole = Json::parse(profile.json());
  const Json& mode = whole.at("modes").at(0);
  EXPECT_EQ(mode.at("operators").size(), 2U);
  EXPECT_EQ(mode.at("operators").at(0).at("op"), "aten::add.Tensor");
  const auto module_at = mode.at("operators").at(0).at("module").get<size_t>();
  EXPECT_EQ(mode.at("modules").at(module_at).at("path").get<std::string>().substr(0, 5), odd.substr(0, 5));
  const Json trace = Json::parse(profile.chrome_trace());
  size_t events = 0;
  for (const Json& event : trace.at("traceEvents")) events += event.at("ph") == "X" ? 1 : 0;
  EXPECT_EQ(events, 2U);
}

TEST(Profile, a_step_that_throws_passes_its_exception_and_leaves_nothing_behind) {
  int calls = 0;
  const auto fails = [&](const at::Tensor& x) {
    (void)(x + 1);
    if (++calls > 4) throw std::runtime_error("the program's own");
  };
  EXPECT_THROW((void)sinter::profile(fails)(at::ones({4})), std::runtime_error);
  EXPECT_THROW((void)sinter::profile([](const at::Tensor& x) { (void)x.view({3}); })(at::ones({4})), c10::Error);
  const Profile profile = sinter::profile([](const at::Tensor& x) { (void)(x + 1); }, {.steps = 1})(at::ones({4}));
  EXPECT_EQ(profile.modes.front().operators.size(), 1U);
}

TEST(Profile, one_at_a_time) {
  const auto inner = [](const at::Tensor& x) { (void)(x + 1); };
  const auto outer = [&](const at::Tensor& x) { (void)sinter::profile(inner)(x); };
  EXPECT_THROW((void)sinter::profile(outer)(at::ones({4})), UserError);
}

TEST(Profile, refuses_options_that_make_no_sense) {
  const auto nothing = [] {};
  EXPECT_THROW((void)sinter::profile(nothing, {.steps = 0})(), UserError);
  EXPECT_THROW((void)sinter::profile(nothing, {.warmup = -1})(), UserError);
  EXPECT_THROW((void)sinter::profile(nothing, {.modules = {{"m", nullptr}}})(), UserError);
}

TEST(Profile, of_a_step_without_operators_is_empty) {
  const Profile profile = sinter::profile([] {})();
  EXPECT_TRUE(profile.modes.front().operators.empty());
  EXPECT_EQ(profile.modes.front().attributed(), 0);
  EXPECT_NE(profile.text().find("lambda  eager  cpu"), std::string::npos);
}

TEST(Profile, of_many_thousand_operators_counts_every_one) {
  constexpr int64_t many = 20000;
  const auto step = [](const at::Tensor& x) {
    at::Tensor y = x;
    for (int64_t i = 0; i < many; ++i) y = y + 1;
  };
  const Profile profile = sinter::profile(step, {.steps = 1, .warmup = 1})(at::ones({1}));
  EXPECT_EQ(std::ssize(profile.modes.front().operators), many);
  EXPECT_EQ(Json::parse(profile.json()).at("modes").at(0).at("operators").size(), size_t{many});
}

TEST(Profile, counts_the_effects_of_every_step) {
  int64_t calls = 0;
  (void)sinter::profile([&] { ++calls; }, {.steps = 2, .warmup = 1})();
  EXPECT_EQ(calls, 6) << "one that warms up, two timed, one before the trace, two traced";
}

TEST(Profile, text_names_module_line_and_phases) {
  const SmallProgram program = training_step();
  const std::string text = profile_of(program, at::ones({64, 32}), {.steps = 1, .name = "small"}).text();
  for (const std::string& part :
       {std::string("small  eager  cpu"), std::string("block0, 1, 2 x3  Block"), std::string("module known for"),
        std::string("AddmmBackward0"), std::string("optimizer"), std::string("peak of a step")}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Profile, says_what_could_not_be_seen) {
  const auto step = [](const at::Tensor& x) { (void)(x + 1); };
  const Profile profile = sinter::profile(step, {.steps = 1, .compile = Options{.enabled = false}})(at::ones({4}));
  ASSERT_EQ(profile.modes.size(), 2U);
  EXPECT_NE(profile.modes.front().notes.at(0).find("no GPU"), std::string::npos);
  EXPECT_NE(profile.modes.back().notes.at(1).find("no traced step ran compiled"), std::string::npos);
  EXPECT_NE(profile.text().find("note   no GPU"), std::string::npos);
}

TEST(Profile, memory_of_modes_stands_side_by_side) {
  Profile profile{.name = "net", .modes = std::vector<ModeProfile>(1)};
  profile.modes[0].mode = "eager";
  profile.modes[0].memory = {.before = 0, .peak = 3 << 20, .reserved = 4 << 20, .owners = {{"other", -1, 3 << 20}}};
  EXPECT_EQ(profile.text().find("memory of a step"), std::string::npos) << "nothing to compare with";
  profile.modes.emplace_back();
  profile.modes[1].mode = "reduce-overhead";
  profile.modes[1].memory = {.before = 0, .peak = 1 << 20, .owners = {{"held between steps", -1, 1 << 20}}};
  const std::string text = profile.text();
  for (const char* row : {"memory of a step                            eager  reduce-overhead",
                          "peak                                      3.0 MiB          1.0 MiB",
                          "kept by the allocator                     4.0 MiB                -",
                          "  held between steps                      0.0 KiB          1.0 MiB"}) {
    EXPECT_NE(text.find(row), std::string::npos) << row << "\n" << text;
  }
}

TEST(Profile, memory_of_a_step_names_what_it_is_for) {
  const ProfiledMemory memory = profile_of(training_step(), at::ones({4096, 32}), {.steps = 1}).modes.front().memory;
  std::map<std::string, int64_t> kinds;
  int64_t sum = 0;
  for (const MemoryOwner& owner : memory.owners) {
    kinds[owner.kind] += owner.bytes;
    sum += owner.bytes;
  }
  EXPECT_EQ(sum, memory.peak);
  EXPECT_GT(memory.peak, memory.before);
  const int64_t parameters = 4 * (3 * (32 * 128 + 128 + 128 * 32 + 32) + 32 * 32 + 32);
  EXPECT_EQ(kinds["parameters"], parameters);
  EXPECT_EQ(kinds["optimizer state"], parameters);
  EXPECT_GT(kinds["saved activations"], int64_t{4096} * 128 * 4) << "what the blocks keep for the backward pass";
}

}  // namespace
}  // namespace sinter::test
