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

TEST_P(GpuZoo, gives_eagers_results_with_the_same_work_in_both_modes) {
  const auto& [name, dtype] = GetParam();
  const Subject subject(name, {at::kCUDA, 0}, dtype);
  const auto sizes = bench::parse_input(subject.row.inputs.at(0), 1).sizes;
  const auto fast = subject.compile({});
  (void)fast(subject.draw(sizes));
  const Work work = work_of(fast.report().entries.at(0));
  EXPECT_GT(work.launches + work.calls, 0);
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) expect_compiled(subject, sizes, mode, work);
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
