#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "eager.h"
#include "harness.h"

namespace sinter::test::hostile {
namespace {

class Hostile : public ::testing::TestWithParam<Case> {};

TEST_P(Hostile, program_does_what_eager_does) { check(*GetParam().program, {}); }

INSTANTIATE_TEST_SUITE_P(Cpu, Hostile, ::testing::ValuesIn(trusted_cases()),
                         [](const auto& instance) { return name_of(instance.param); });

class HostileChecked : public ::testing::TestWithParam<Case> {};

TEST_P(HostileChecked, program_does_what_eager_does) {
  const int first_replay = check_replayed_by_host_code(*GetParam().program, {});
  RecordProperty("first_replay", first_replay);
  const auto reasons = checked_eager_reasons();
  const bool listed = std::ranges::any_of(reasons, [](const EagerReason& reason) {
    return std::ranges::find(reason.programs, GetParam().program->name) != reason.programs.end();
  });
  EXPECT_EQ(first_replay == 0, listed);
}

INSTANTIATE_TEST_SUITE_P(Cpu, HostileChecked, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return name_of(instance.param); });

/// The programs whose outcome under Replay::trusted is stated.
std::vector<Case> stated_cases() {
  std::vector<Case> all = trusted_cases();
  std::erase_if(all, [](const Case& one) { return one.program->expect.trusted != Trusted::as_stated; });
  return all;
}

TEST(HostileSuite, names_every_program_that_runs_eagerly_and_why) {
  std::set<std::string_view> listed;
  for (const auto& [reason, programs] : eager_reasons()) {
    for (const auto name : programs) EXPECT_TRUE(listed.insert(name).second) << name << " is listed twice";
  }
  std::set<std::string_view> eager;
  for (const auto& [group, program] : stated_cases()) {
    if (!program->expect.breaks.empty() || program->expect.first_replay == 0) eager.insert(program->name);
  }
  std::vector<std::string_view> in_one;
  std::ranges::set_symmetric_difference(eager, listed, std::back_inserter(in_one));
  EXPECT_EQ(in_one, std::vector<std::string_view>());
}

/// Programs without a break replay every combination of guards from its third call on. Others count where only their
/// first calls broke.
TEST(HostileSuite, is_answered_by_plans_from_the_fourth_call_on_in_three_of_four_programs) {
  const std::vector<Case> all = stated_cases();
  const auto ends_compiled = [](const Case& c) {
    const Expectation& expect = c.program->expect;
    const auto& breaks = expect.breaks;
    const bool given_up = std::find(breaks.begin(), breaks.end(), BreakCode::unstable) != breaks.end();
    return breaks.empty() || (expect.first_replay != 0 && expect.first_replay <= 4 && !given_up);
  };
  const auto compiled = std::count_if(all.begin(), all.end(), ends_compiled);
  EXPECT_GE(4 * compiled, 3 * static_cast<int64_t>(all.size())) << compiled << " of " << all.size();
}

TEST(HostileSuite, gives_every_program_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (const auto& [group, program] : cases()) EXPECT_TRUE(names.insert(program->name).second) << program->name;
}

}  // namespace
}  // namespace sinter::test::hostile
