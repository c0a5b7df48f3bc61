#include <ATen/cuda/CUDAContextLight.h>
#include <gtest/gtest.h>

#include "groups.h"

namespace sinter::test::hostile {
namespace {

class HostileGpu : public ::testing::TestWithParam<Case> {};

std::string name_of_instance(const ::testing::TestParamInfo<Case>& instance) { return name_of(instance.param); }

std::vector<Case> cases_of(const Group& group) { return cases({&group, 1}); }

/// Launched directly, and as recorded graphs.
void check_in_both_modes(const Program& program) {
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    SCOPED_TRACE(mode == Mode::Default ? "default" : "reduce-overhead");
    const int first = check(program, {.device = {at::kCUDA, 0}, .mode = mode});
    ::testing::Test::RecordProperty(mode == Mode::Default ? "first_replay" : "first_replay_as_graph", first);
  }
}

TEST_P(HostileGpu, program_does_what_eager_does) {
  if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
  check_in_both_modes(*GetParam().program);
  if (at::cuda::getNumGPUs() < 2) return;
  SCOPED_TRACE("on a GPU that is not current");
  (void)check(*GetParam().program, {.device = {at::kCUDA, 1}, .mode = Mode::ReduceOverhead});
}

INSTANTIATE_TEST_SUITE_P(Gpu, HostileGpu, ::testing::ValuesIn(cases()), name_of_instance);

/// Programs that have no twin on the CPU.
class HostileStreams : public ::testing::TestWithParam<Case> {};

TEST_P(HostileStreams, program_does_what_eager_does) {
  if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
  check_in_both_modes(*GetParam().program);
}

INSTANTIATE_TEST_SUITE_P(Gpu, HostileStreams, ::testing::ValuesIn(cases_of({"streams", stream_programs()})),
                         name_of_instance);

/// Programs about several GPUs.
class HostileGpus : public ::testing::TestWithParam<Case> {};

TEST_P(HostileGpus, program_does_what_eager_does) {
  if (at::cuda::getNumGPUs() < 2) GTEST_SKIP() << "no second GPU";
  check_in_both_modes(*GetParam().program);
}

INSTANTIATE_TEST_SUITE_P(Gpu, HostileGpus, ::testing::ValuesIn(cases_of({"gpus", gpus_programs()})), name_of_instance);

}  // namespace
}  // namespace sinter::test::hostile
