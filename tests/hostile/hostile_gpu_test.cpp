#include <ATen/cuda/CUDAContextLight.h>
#include <gtest/gtest.h>

#include <map>
#include <string_view>

#include "harness.h"

namespace sinter::test::hostile {
namespace {

/// What becomes of a program otherwise than on the CPU: a copy to the CPU that the program itself looks at is a host
/// read, both devices are used, and a tensor from nowhere is never known by its content.
Program on_the_gpu(Program program) {
  static const std::map<std::string_view, Expectation> others{
      {"another_device_and_back", replays(2)},
      {"a_module_moved_to_another_device", replays(2)},
      {"a_captured_tensor_replaced_inside", runs_eagerly({BreakCode::unsupported_op})},
      {"a_thread_started_inside", runs_eagerly({BreakCode::unsupported_op})},
      {"an_accessor_that_reads_an_input", runs_eagerly({BreakCode::host_read})},
      {"a_tensor_printed", runs_eagerly({BreakCode::host_read})},
  };
  const auto other = others.find(program.name);
  if (other != others.end()) program.expect = other->second;
  return program;
}

class HostileGpu : public ::testing::TestWithParam<Case> {};

TEST_P(HostileGpu, program_does_what_eager_does) {
  if (!at::cuda::is_available()) GTEST_SKIP() << "no GPU";
  check(on_the_gpu(*GetParam().program), at::Device(at::kCUDA, 0));
}

INSTANTIATE_TEST_SUITE_P(Gpu, HostileGpu, ::testing::ValuesIn(cases()), [](const auto& instance) {
  return std::string(instance.param.group) + "_" + instance.param.program->name;
});

}  // namespace
}  // namespace sinter::test::hostile
