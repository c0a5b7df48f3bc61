#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDAFunctions.h>

#include "tests/models/check.h"

namespace sinter::test {
namespace {

class GpuModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (c10::cuda::device_count() == 0) GTEST_SKIP() << "needs a GPU";
  }
  static Subject on_gpu(const std::string& name, at::ScalarType dtype) { return {name, {at::kCUDA, 0}, dtype}; }

 private:
  at::NoGradGuard no_grad_;
};

const std::vector<int64_t> image = {1, 3, 224, 224};
constexpr Mode both_modes[] = {Mode::Default, Mode::ReduceOverhead};

TEST_F(GpuModels, gelu_is_one_kernel) {
  for (const Mode mode : both_modes) {
    for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
      expect_compiled(on_gpu("gelu", dtype), {1024, 65}, {.mode = mode}, {.launches = 1, .kernels = 1, .calls = 0});
    }
  }
}

TEST_F(GpuModels, gelu_mlp_is_one_kernel_between_two_library_calls) {
  for (const Mode mode : both_modes) {
    for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
      expect_compiled(on_gpu("gelu_mlp", dtype), {128, 768}, {.mode = mode}, {.launches = 1, .kernels = 1, .calls = 2});
    }
  }
}

TEST_F(GpuModels, resnet50_in_halves_is_49_kernels_and_18_changes_of_layout) {
  for (const Mode mode : both_modes) {
    expect_compiled(on_gpu("resnet50", at::kHalf), image, {.mode = mode}, {.launches = 67, .kernels = 23, .calls = 54});
  }
}

TEST_F(GpuModels, resnet50_in_float_gives_eagers_results) {
  for (const Mode mode : both_modes) {
    const Subject resnet = on_gpu("resnet50", at::kFloat);
    const auto fast = resnet.compile({.mode = mode});
    for (uint64_t call = 1; call <= 4; ++call) ASSERT_TRUE(resnet.agrees(fast, resnet.draw(image, call)));
    const Report report = fast.report();
    ASSERT_EQ(report.entries.size(), 1U) << report;
    EXPECT_TRUE(report.entries.front().breaks.empty()) << report;
    EXPECT_EQ(work_of(report.entries.front()).calls, 54) << report;
  }
}

TEST_F(GpuModels, reduce_overhead_replays_one_graph) {
  const Subject resnet = on_gpu("resnet50", at::kHalf);
  const auto fast = resnet.compile({.mode = Mode::ReduceOverhead});
  for (uint64_t call = 1; call <= 5; ++call) ASSERT_TRUE(resnet.agrees(fast, resnet.draw(image, call)));
  EXPECT_EQ(fast.report().entries.at(0).graphs, 1) << fast.report();
}

TEST_F(GpuModels, the_next_call_sees_a_write_to_any_parameter) {
  for (const Mode mode : both_modes) {
    const Subject resnet = on_gpu("resnet50", at::kHalf);
    const auto fast = resnet.compile({.mode = mode});
    const Inputs inputs = resnet.draw(image);
    for (int call = 0; call < 3; ++call) (void)fast(inputs);
    const at::Tensor before = fast(inputs);
    for (const at::Tensor& parameter : resnet.model.module->parameters()) parameter.mul_(1.01);
    EXPECT_TRUE(resnet.agrees(fast, inputs));
    EXPECT_FALSE(fast(inputs).equal(before));
    EXPECT_EQ(fast.report().entries.size(), 1U) << fast.report();
  }
}

TEST_F(GpuModels, one_compiled_object_serves_two_devices_shapes_and_dtypes) {
  const Subject on_cpu("gelu", at::kCPU, at::kFloat);
  const Subject in_float = on_gpu("gelu", at::kFloat);
  const Subject in_half = on_gpu("gelu", at::kHalf);
  const auto fast = in_float.compile({});
  for (uint64_t call = 1; call <= 3; ++call) {
    ASSERT_TRUE(on_cpu.agrees(fast, on_cpu.draw({64}, call)));
    ASSERT_TRUE(in_float.agrees(fast, in_float.draw({64}, call)));
    ASSERT_TRUE(in_float.agrees(fast, in_float.draw({8, 9}, call)));
    ASSERT_TRUE(in_half.agrees(fast, in_half.draw({64}, call)));
  }
  EXPECT_EQ(fast.report().entries.size(), 4U) << fast.report();
}

TEST_F(GpuModels, freezing_leaves_the_layout_of_weights_out_of_the_calls) {
  const Subject resnet = on_gpu("resnet50", at::kHalf);
  const auto fast = resnet.compile({.freeze = true});
  for (uint64_t call = 1; call <= 3; ++call) ASSERT_TRUE(resnet.agrees(fast, resnet.draw(image, call)));
  const EntryReport entry = fast.report().entries.at(0);
  EXPECT_TRUE(entry.breaks.empty());
  EXPECT_LT(work_of(entry).launches, 67) << fast.report();
}

TEST_F(GpuModels, eager_numerics_are_closer_to_eager_on_halves) {
  const Subject gelu = on_gpu("gelu", at::kHalf);
  const Inputs inputs = gelu.draw({1 << 16});
  const auto distance = [&](Numerics numerics) {
    const auto fast = gelu.compile({.numerics = numerics});
    for (int call = 0; call < 2; ++call) (void)fast(inputs);
    return (fast(inputs).to(at::kDouble) - gelu.model.forward(inputs).to(at::kDouble)).square().mean().item<double>();
  };
  EXPECT_LT(distance(Numerics::eager), distance(Numerics::fast) / 10);
}

}  // namespace
}  // namespace sinter::test
