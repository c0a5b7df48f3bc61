#include <ATen/cuda/CUDAContextLight.h>
#include <gtest/gtest.h>

#include "summary.h"

namespace sinter::test::fuzz {
namespace {

constexpr int kPrograms = 100;

void run_share(sinter::Mode mode, sinter::Replay replay = sinter::Replay::checked) {
  if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
  Summary summary;
  summary.device = "cuda";
  if (mode == sinter::Mode::ReduceOverhead) summary.mode = "reduce-overhead";
  summary.first_seed = 1;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) run_seed(seed, {at::Device(at::kCUDA, 0), mode, replay}, summary);
  EXPECT_TRUE(summary.failures.empty()) << summary.text();
  EXPECT_GE(summary.replayed_percent(), kLeastReplayed) << summary.text();
  EXPECT_LT(summary.rounding * 50, summary.programs) << summary.text();
}

TEST(FuzzGpu, random_programs_do_what_eager_does_and_most_are_replayed) { run_share(sinter::Mode::Default); }

TEST(FuzzGpu, random_programs_do_so_as_recorded_graphs) { run_share(sinter::Mode::ReduceOverhead); }

TEST(FuzzGpu, random_programs_do_so_where_replays_leave_the_host_code_out) {
  run_share(sinter::Mode::Default, sinter::Replay::trusted);
  run_share(sinter::Mode::ReduceOverhead, sinter::Replay::trusted);
}

}  // namespace
}  // namespace sinter::test::fuzz
