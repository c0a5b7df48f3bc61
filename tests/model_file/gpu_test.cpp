#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDAFunctions.h>

#include "tests/model_file/cases.h"

namespace sinter::test {
namespace {

class GpuModelFiles : public ::testing::TestWithParam<FileCase> {
 protected:
  void SetUp() override {
    if (c10::cuda::device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

TEST_P(GpuModelFiles, give_what_python_gives) { expect_as_python(GetParam(), at::Device(at::kCUDA, 0), Mode::Default); }
TEST_P(GpuModelFiles, give_what_python_gives_as_a_graph) {
  expect_as_python(GetParam(), at::Device(at::kCUDA, 0), Mode::ReduceOverhead);
}

TEST(GpuModelFile, is_the_same_work_whichever_way_it_was_saved) {
  if (c10::cuda::device_count() == 0) GTEST_SKIP() << "no GPU";
  const Work work = work_of_file("convnet.pt2", at::kCUDA);
  EXPECT_EQ(work_of_file("traced.pt", at::kCUDA), work);
}

TEST(GpuModelFile, makes_constants_of_the_host_once) {
  if (c10::cuda::device_count() == 0) GTEST_SKIP() << "no GPU";
  const c10::NoGradGuard no_grad;
  Model model(data_file("host_made.pt2"));
  model.to(at::kCUDA);
  const auto call = [&](const at::Tensor& x) { return model.forward({x}); };
  const auto fast = compile(call, {.mode = Mode::ReduceOverhead, .replay = Replay::trusted});
  for (int i = 0; i < 5; ++i) {
    const at::Tensor x = at::randn({4, 8}, at::kCUDA);
    EXPECT_TRUE(same(fast(x), call(x), 1e-5)) << i << "\n" << fast.report();
  }
}

INSTANTIATE_TEST_SUITE_P(Exported, GpuModelFiles, ::testing::ValuesIn(file_cases()),
                         [](const auto& test) { return test.param.file.substr(0, test.param.file.find('.')); });

}  // namespace
}  // namespace sinter::test
