#include <ATen/core/grad_mode.h>

#include <set>
#include <string>

#include "tests/models/check.h"

namespace sinter::test {
namespace {

class Models : public ::testing::Test {
 protected:
  static Subject on_cpu(const std::string& name, at::ScalarType dtype = at::kFloat) { return {name, at::kCPU, dtype}; }

 private:
  at::NoGradGuard no_grad_;
};

const std::vector<int64_t> small_image = {1, 3, 64, 64};

TEST_F(Models, gelu_is_one_kernel) {
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    expect_compiled(on_cpu("gelu"), {128, 65}, counted(mode), {.launches = 1, .kernels = 1, .calls = 0});
  }
}

TEST_F(Models, gelu_mlp_is_one_kernel_between_two_library_calls) {
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    expect_compiled(on_cpu("gelu_mlp"), {4, 768}, counted(mode), {.launches = 1, .kernels = 1, .calls = 2});
  }
}

TEST_F(Models, half_precision_models_are_as_accurate_as_eager) {
  for (const auto dtype : {at::kHalf, at::kBFloat16}) {
    expect_compiled(on_cpu("gelu", dtype), {1000}, counted(), {.launches = 1, .kernels = 1, .calls = 0});
    expect_compiled(on_cpu("gelu_mlp", dtype), {4, 768}, counted(), {.launches = 1, .kernels = 1, .calls = 2});
  }
}

TEST_F(Models, resnet50_is_one_kernel_for_each_batch_norm_with_what_follows_it) {
  const Subject resnet = on_cpu("resnet50");
  const auto fast = resnet.compile(counted());
  const Work work = work_of(fast, resnet, small_image);
  expect_compiled(resnet, small_image, counted(), {.launches = 50, .kernels = work.kernels, .calls = 55});
  EXPECT_LT(work.kernels, 50) << "repeated blocks share kernels";
}

TEST_F(Models, resnet50_is_the_same_work_in_reduce_overhead) {
  const Subject resnet = on_cpu("resnet50");
  const auto fast = resnet.compile(counted(Mode::ReduceOverhead));
  for (uint64_t call = 1; call <= 3; ++call) ASSERT_TRUE(resnet.agrees(fast, resnet.draw(small_image, call)));
  const Work work = work_of(fast.report().entries.at(0));
  EXPECT_EQ(work.launches, 50);
  EXPECT_EQ(work.calls, 55);
}

TEST_F(Models, calls_of_the_library_have_the_names_that_torchvision_gives_their_modules) {
  const Subject resnet = on_cpu("resnet50");
  const auto fast = resnet.compile(counted());
  (void)work_of(fast, resnet, small_image);
  std::set<std::string> modules;
  const EntryReport entry = fast.report().entries.at(0);
  for (const ExternRecord& call : entry.externs) {
    const bool weighted = call.op == "aten::convolution" || call.op == "aten::addmm";
    if (weighted) modules.insert(call.modules.begin(), call.modules.end());
  }
  for (const char* name : {"conv1", "layer1.0.downsample.0", "layer3.5.conv3", "layer4.2.conv2", "fc"}) {
    EXPECT_TRUE(modules.count("resnet50." + std::string(name)) == 1) << name << "\n" << fast.report();
  }
  EXPECT_EQ(modules.size(), 54U) << fast.report();
}

TEST_F(Models, the_next_call_sees_a_write_to_a_weight) {
  const Subject mlp = on_cpu("gelu_mlp");
  const auto fast = mlp.compile({});
  const Inputs inputs = mlp.draw({4, 768});
  for (int call = 0; call < 3; ++call) ASSERT_TRUE(mlp.agrees(fast, inputs));
  const at::Tensor before = fast(inputs);
  for (const at::Tensor& parameter : mlp.model.module->parameters()) {
    parameter.mul_(1.5);
    ASSERT_TRUE(mlp.agrees(fast, inputs));
  }
  EXPECT_FALSE(fast(inputs).equal(before));
  EXPECT_EQ(fast.report().entries.size(), 1U) << fast.report();
}

TEST_F(Models, the_next_call_sees_a_write_to_a_running_statistic) {
  const Subject resnet = on_cpu("resnet50");
  const auto fast = resnet.compile({});
  const Inputs inputs = resnet.draw(small_image);
  for (int call = 0; call < 3; ++call) (void)fast(inputs);
  for (const at::Tensor& buffer : resnet.model.module->buffers()) {
    if (buffer.is_floating_point()) buffer.mul_(1.1);
  }
  EXPECT_TRUE(resnet.agrees(fast, inputs));
  EXPECT_EQ(fast.report().entries.size(), 1U) << fast.report();
}

TEST_F(Models, one_compiled_object_serves_two_shapes_and_two_dtypes) {
  const Subject gelu = on_cpu("gelu");
  const Subject half = on_cpu("gelu", at::kHalf);
  const auto fast = gelu.compile({});
  for (uint64_t call = 1; call <= 3; ++call) {
    ASSERT_TRUE(gelu.agrees(fast, gelu.draw({64}, call)));
    ASSERT_TRUE(gelu.agrees(fast, gelu.draw({8, 9}, call)));
    ASSERT_TRUE(half.agrees(fast, half.draw({64}, call)));
  }
  const Report report = fast.report();
  ASSERT_EQ(report.entries.size(), 3U) << report;
  for (const EntryReport& entry : report.entries) EXPECT_EQ(entry.replays, 2) << report;
}

TEST_F(Models, resnet50_compiles_another_batch_once) {
  const Subject resnet = on_cpu("resnet50");
  const auto fast = resnet.compile({});
  for (const int64_t batch : {1, 2, 1, 2, 1, 2}) {
    ASSERT_TRUE(resnet.agrees(fast, resnet.draw({batch, 3, 64, 64}))) << "batch " << batch;
  }
  EXPECT_EQ(fast.report().entries.size(), 2U) << fast.report();
  EXPECT_EQ(fast.stats().replayed, 4) << fast.report();
}

TEST_F(Models, freezing_changes_no_result_and_starts_no_more) {
  const Subject resnet = on_cpu("resnet50");
  const auto fast = resnet.compile({.freeze = true});
  for (uint64_t call = 1; call <= 3; ++call) ASSERT_TRUE(resnet.agrees(fast, resnet.draw(small_image, call)));
  const EntryReport entry = fast.report().entries.at(0);
  EXPECT_TRUE(entry.breaks.empty());
  const Work work = work_of(entry);
  EXPECT_LE(work.launches + work.calls, 105) << fast.report();
}

TEST_F(Models, eager_numerics_are_closer_to_eager_on_halves) {
  const Subject gelu = on_cpu("gelu", at::kHalf);
  const Inputs inputs = gelu.draw({4096});
  const auto distance = [&](Numerics numerics) {
    const auto fast = gelu.compile({.numerics = numerics});
    for (int call = 0; call < 2; ++call) (void)fast(inputs);
    return (fast(inputs).to(at::kDouble) - gelu.model.forward(inputs).to(at::kDouble)).square().mean().item<double>();
  };
  EXPECT_LT(distance(Numerics::eager), distance(Numerics::fast) / 10);
}

}  // namespace
}  // namespace sinter::test
