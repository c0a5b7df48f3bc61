#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "eager.h"
#include "harness.h"

namespace sinter::test::hostile {
namespace {

constexpr int kThirdCall = 3;

class Hostile : public ::testing::TestWithParam<Case> {};

TEST_P(Hostile, program_does_what_eager_does) {
  const std::string_view name = GetParam().program->name;
  const int first_replay = check(*GetParam().program, {});
  RecordProperty("first_replay", first_replay);
  EXPECT_EQ(first_replay == 0, names(never_replayed(), name)) << first_replay;
  EXPECT_EQ(first_replay > kThirdCall, names(replayed_late(), name)) << first_replay;
}

INSTANTIATE_TEST_SUITE_P(Cpu, Hostile, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return name_of(instance.param); });

TEST(HostileSuite, gives_every_program_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (const auto& [group, program] : cases()) EXPECT_TRUE(names.insert(program->name).second) << program->name;
}

/// The programs that a list names, each of which is one of the suite's.
std::set<std::string_view> programs_in(const std::vector<Reason>& list) {
  const std::vector<Case> all = cases();
  std::set<std::string_view> listed;
  for (const auto& [reason, programs] : list) {
    for (const auto name : programs) {
      EXPECT_TRUE(listed.insert(name).second) << name << " is listed twice";
      EXPECT_TRUE(std::ranges::any_of(all, [&](const Case& one) { return one.program->name == name; })) << name;
    }
  }
  return listed;
}

TEST(HostileSuite, is_answered_compiled_by_the_third_call_in_94_of_100_programs_and_never_in_ten) {
  const size_t all = cases().size();
  const size_t never = programs_in(never_replayed()).size();
  const size_t compiled = all - never - programs_in(replayed_late()).size();
  EXPECT_GE(100 * compiled, 94 * all) << compiled << " of " << all;
  EXPECT_LE(never, 10);
}

}  // namespace
}  // namespace sinter::test::hostile
