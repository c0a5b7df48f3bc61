#include <gtest/gtest.h>

#include "summary.h"

namespace sinter::test::fuzz {
namespace {

constexpr int kPrograms = 800;
constexpr int kProgramsTrusted = 250;

void run_share(int programs, sinter::Replay replay) {
  Summary summary;
  summary.device = "cpu";
  summary.first_seed = 1;
  hostile::Place place;
  place.replay = replay;
  for (int seed = 1; seed <= programs; ++seed) run_seed(static_cast<uint64_t>(seed), place, summary);
  EXPECT_TRUE(summary.failures.empty()) << summary.text();
  EXPECT_GE(summary.replayed_percent(), kLeastReplayed) << summary.text();
  EXPECT_LT(summary.rounding * 50, summary.programs) << summary.text();
}

TEST(Fuzz, random_programs_do_what_eager_does_and_most_are_replayed) { run_share(kPrograms, sinter::Replay::checked); }

TEST(Fuzz, random_programs_do_so_where_replays_leave_the_host_code_out) {
  run_share(kProgramsTrusted, sinter::Replay::trusted);
}

TEST(Fuzz, halves_that_overflow_in_eager_and_not_in_a_kernel_are_no_difference) {
  constexpr uint64_t kOverflows = 1280463412;
  Summary summary;
  summary.first_seed = kOverflows;
  summary.device = "cpu";
  run_seed(kOverflows, hostile::Place{}, summary);
  EXPECT_TRUE(summary.failures.empty()) << summary.text();
}

}  // namespace
}  // namespace sinter::test::fuzz
