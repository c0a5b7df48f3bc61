#include <ATen/cuda/CUDAContextLight.h>
#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "groups.h"

namespace sinter::test::hostile {
namespace {

/// What becomes of a program otherwise than on the CPU: a copy to the CPU that the program itself looks at is a host
/// read, both devices are used, a tensor from nowhere is never known by its content, and cuDNN has the weights of a
/// recurrent layer in one memory.
Program on_the_gpu(Program program) {
  static const std::map<std::string_view, Expectation> others{
      {"another_device_and_back", replays(2)},
      {"a_module_moved_to_another_device", replays(2)},
      {"a_captured_tensor_replaced_inside", runs_eagerly({BreakCode::unsupported_op})},
      {"a_training_step_of_an_lstm", runs_eagerly({BreakCode::unsupported_op})},
      {"a_thread_started_inside", runs_eagerly({BreakCode::unsupported_op})},
      {"an_accessor_that_reads_an_input", runs_eagerly({BreakCode::host_read})},
      {"a_tensor_printed", runs_eagerly({BreakCode::host_read})},
  };
  const auto other = others.find(program.name);
  if (other != others.end()) program.expect = other->second;
  return program;
}

class HostileGpu : public ::testing::TestWithParam<Case> {};

/// Launched directly, and as recorded graphs.
void check_in_both_modes(const Program& program) {
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    SCOPED_TRACE(mode == Mode::Default ? "default" : "reduce-overhead");
    check(program, {.device = {at::kCUDA, 0}, .mode = mode});
  }
}

std::string name_of_instance(const ::testing::TestParamInfo<Case>& instance) { return name_of(instance.param); }

TEST_P(HostileGpu, program_does_what_eager_does) {
  if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
  const Program program = on_the_gpu(*GetParam().program);
  check_in_both_modes(program);
  if (at::cuda::getNumGPUs() < 2) return;
  SCOPED_TRACE("on a GPU that is not current");
  check(program, {.device = {at::kCUDA, 1}, .mode = Mode::ReduceOverhead});
}

INSTANTIATE_TEST_SUITE_P(Gpu, HostileGpu, ::testing::ValuesIn(trusted_cases()), name_of_instance);

std::vector<Case> cases_of(const Group& group) { return cases({&group, 1}); }

/// Replays run the host code.
class HostileCheckedGpu : public ::testing::TestWithParam<Case> {};

TEST_P(HostileCheckedGpu, program_does_what_eager_does) {
  if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
  const std::string_view name = GetParam().program->name;
  if (name == "a_frozen_function_destroyed_while_another_stream_runs") GTEST_SKIP() << "freeze is refused";
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    SCOPED_TRACE(mode == Mode::Default ? "default" : "reduce-overhead");
    const int first = check_replayed_by_host_code(*GetParam().program, {.device = {at::kCUDA, 0}, .mode = mode});
    RecordProperty(mode == Mode::Default ? "first_replay" : "first_replay_as_graph", first);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, HostileCheckedGpu, ::testing::ValuesIn(cases()), name_of_instance);
INSTANTIATE_TEST_SUITE_P(GpuStreams, HostileCheckedGpu, ::testing::ValuesIn(cases_of({"streams", stream_programs()})),
                         name_of_instance);

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
