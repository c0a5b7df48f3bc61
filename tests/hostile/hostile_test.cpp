#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "eager.h"
#include "harness.h"

namespace sinter::test::hostile {
namespace {

class Hostile : public ::testing::TestWithParam<Case> {};

TEST_P(Hostile, program_does_what_eager_does) { check(*GetParam().program, at::kCPU); }

INSTANTIATE_TEST_SUITE_P(Cpu, Hostile, ::testing::ValuesIn(cases()), [](const auto& instance) {
  return std::string(instance.param.group) + "_" + instance.param.program->name;
});

TEST(HostileSuite, names_every_program_that_runs_eagerly_and_why) {
  std::set<std::string_view> listed;
  for (const auto& [reason, programs] : eager_reasons()) {
    for (const auto name : programs) EXPECT_TRUE(listed.insert(name).second) << name << " is listed twice";
  }
  std::set<std::string_view> eager;
  for (const auto& [group, program] : cases()) {
    if (!program->expect.breaks.empty() || program->expect.first_replay == 0) eager.insert(program->name);
  }
  EXPECT_EQ(eager, listed);
}

TEST(HostileSuite, gives_every_program_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (const auto& [group, program] : cases()) EXPECT_TRUE(names.insert(program->name).second) << program->name;
}

}  // namespace
}  // namespace sinter::test::hostile
