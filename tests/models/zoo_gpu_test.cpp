#include <ATen/core/grad_mode.h>
#include <c10/cuda/CUDAFunctions.h>

#include <tuple>

#include "bench/measure/inputs.h"
#include "tests/models/check.h"

namespace sinter::test {
namespace {

/// Every built-in model as it is, on a GPU, in two dtypes.
class GpuZoo : public ::testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {
 protected:
  void SetUp() override {
    if (c10::cuda::device_count() == 0) GTEST_SKIP() << "needs a GPU";
  }

 private:
  at::NoGradGuard no_grad_;
};

/// Kernels that one call ran on an H200 when it was measured (bench/results/2026-11-21-h200-zoo-*.json), libraries' own
/// included: launches and library calls together are no more. Eager ran more of each but lstm, whose one call of cuDNN
/// starts hundreds.
int64_t most_work(const std::string& model, at::ScalarType dtype) {
  struct Row {
    const char* model;
    int64_t f32, f16;
  };
  constexpr Row rows[] = {{"gelu", 1, 1},        {"gelu_mlp", 3, 3},   {"resnet50", 133, 123}, {"vgg16", 68, 68},
                          {"vit_b16", 156, 141}, {"swin_t", 305, 327}, {"swin_b", 635, 599},   {"convnext_l", 313, 304},
                          {"lstm", 8, 8},        {"gpt", 429, 409},    {"moe", 24, 24}};
  for (const Row& row : rows) {
    if (row.model == model) return dtype == at::kHalf ? row.f16 : row.f32;
  }
  ADD_FAILURE() << model << " has no row";
  return 0;
}

TEST_P(GpuZoo, gives_eagers_results_with_little_work_and_the_same_in_both_modes) {
  const auto& [name, dtype] = GetParam();
  const Subject subject(name, {at::kCUDA, 0}, dtype);
  const auto sizes = bench::parse_input(subject.row.inputs.at(0), 1).sizes;
  const auto fast = subject.compile({});
  const Work work = work_of(fast, subject, sizes);
  EXPECT_GT(work.launches + work.calls, 0);
  EXPECT_LE(work.launches + work.calls, most_work(name, dtype)) << fast.report();
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) expect_compiled(subject, sizes, {.mode = mode}, work);
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const bench::ModelRow& row : bench::models()) all.emplace_back(row.name);
  return all;
}

std::string label(const ::testing::TestParamInfo<GpuZoo::ParamType>& parameter) {
  return std::get<0>(parameter.param) + (std::get<1>(parameter.param) == at::kHalf ? "_f16" : "_f32");
}

INSTANTIATE_TEST_SUITE_P(FullSize, GpuZoo,
                         ::testing::Combine(::testing::ValuesIn(names()), ::testing::Values(at::kFloat, at::kHalf)),
                         label);

}  // namespace
}  // namespace sinter::test
