#include <gtest/gtest.h>

#include "summary.h"

namespace sinter::test::fuzz {
namespace {

constexpr int kPrograms = 800;

TEST(Fuzz, random_programs_do_what_eager_does_and_most_are_replayed) {
  Summary summary;
  summary.device = "cpu";
  summary.first_seed = 1;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) run_seed(seed, {}, summary);
  EXPECT_TRUE(summary.failures.empty()) << summary.text();
  EXPECT_GE(summary.replayed_percent(), kLeastReplayed) << summary.text();
  EXPECT_LT(summary.rounding * 50, summary.programs) << summary.text();
}

}  // namespace
}  // namespace sinter::test::fuzz
