#include <ATen/Context.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "small_models.h"

namespace sinter::test {
namespace {

class GpuProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU here";
  }

  static void expect_traced(const ModeProfile& profile) {
    ASSERT_TRUE(profile.on_device()) << (profile.notes.empty() ? "" : profile.notes.front());
    double all = 0;
    double unknown = 0;
    for (const ProfiledKernel& kernel : profile.kernels) {
      all += kernel.time;
      if (kernel.op < 0) unknown += kernel.time;
    }
    EXPECT_GT(all, 0);
    EXPECT_LE(unknown, 0.01 * all);
    EXPECT_GE(profile.attributed(), 0.95);
    expect_shares(profile);
  }

  static void expect_shares(const ModeProfile& profile) {
    ASSERT_TRUE(profile.shares);
    const StepShares& shares = *profile.shares;
    EXPECT_NEAR(shares.busy + shares.between + shares.launch + shares.wait + shares.host, 1, 1e-9);
    EXPECT_GT(shares.busy, 0);
  }
};

TEST_F(GpuProfile, kernels_of_a_training_step_belong_to_modules) {
  const Profile profile = profile_of(training_step(at::kCUDA), at::ones({4096, 32}, at::kCUDA));
  expect_traced(profile.modes.front());
  const auto& operators = profile.modes.front().operators;
  EXPECT_TRUE(std::ranges::any_of(operators, [](const ProfiledOperator& op) {
    return op.phase == Phase::backward && op.launches > 0 && op.module > 0;
  }));
}

TEST_F(GpuProfile, kernels_of_a_compiled_step_belong_to_modules) {
  const Profile profile = profile_of(training_step(at::kCUDA), at::ones({4096, 32}, at::kCUDA), {.compile = Options{}});
  ASSERT_EQ(profile.modes.size(), 2U);
  expect_traced(profile.modes.back());
}

TEST_F(GpuProfile, kernels_of_a_replayed_graph_belong_to_modules) {
  const Profile profile = profile_of(training_step(at::kCUDA), at::ones({4096, 32}, at::kCUDA),
                                     {.compile = Options{.mode = Mode::ReduceOverhead}});
  ASSERT_EQ(profile.modes.size(), 2U);
  ASSERT_TRUE(profile.modes.back().on_device());
  EXPECT_GE(profile.modes.back().attributed(), 0.9);
}

TEST_F(GpuProfile, a_number_that_the_host_reads_is_a_wait_with_a_hint) {
  const auto step = [](const at::Tensor& x) { return (x * 2).sum().item<float>(); };
  const Profile profile = sinter::profile(step)(at::ones({1 << 20}, at::kCUDA));
  const auto& waits = profile.modes.front().waits;
  ASSERT_FALSE(waits.empty()) << profile.text();
  EXPECT_EQ(waits.front().op, "aten::item");
  EXPECT_FALSE(waits.front().hint.empty());
  EXPECT_EQ(waits.front().count, 1);
}

TEST_F(GpuProfile, memory_of_a_step_is_the_allocators) {
  const Profile profile = profile_of(training_step(at::kCUDA), at::ones({4096, 32}, at::kCUDA));
  const ProfiledMemory& memory = profile.modes.front().memory;
  EXPECT_GT(memory.peak, memory.before + memory.held);
  EXPECT_GE(memory.reserved, memory.peak);
}

TEST_F(GpuProfile, kernels_stand_against_measured_limits) {
  const Profile profile = profile_of(training_step(at::kCUDA), at::ones({4096, 32}, at::kCUDA));
  const DeviceLimits& limits = profile.modes.front().limits;
  EXPECT_EQ(limits.problem, "");
  EXPECT_GT(limits.bandwidth, 1e11) << "slower than any GPU";
  ASSERT_EQ(limits.peaks.size(), 1U);
  EXPECT_EQ(limits.peaks[0].dtype, "f32");
  const auto& operators = profile.modes.front().operators;
  EXPECT_TRUE(std::ranges::any_of(operators, [](const ProfiledOperator& op) { return op.flops > 0 && op.device > 0; }));
}

}  // namespace
}  // namespace sinter::test
