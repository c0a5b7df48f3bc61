#include <ATen/core/grad_mode.h>

#include "tests/models/check.h"

namespace sinter::test {
namespace {

/// A model, reduced so that it runs in a moment, and what one call of it starts on the CPU.
struct Case {
  std::string model;
  bench::Settings settings;
  std::vector<int64_t> sizes;
  int64_t launches;
  int64_t calls;
};
void PrintTo(const Case& subject, std::ostream* out) { *out << subject.model; }

class Zoo : public ::testing::TestWithParam<Case> {
 private:
  at::NoGradGuard no_grad_;
};

TEST_P(Zoo, gives_eagers_results_with_known_work_in_both_modes) {
  const Case& expected = GetParam();
  const Subject subject(expected.model, at::kCPU, at::kFloat, expected.settings);
  for (const Mode mode : {Mode::Default, Mode::ReduceOverhead}) {
    const auto fast = subject.compile(counted(mode));
    const Work work = work_of(fast, subject, expected.sizes);
    EXPECT_EQ(work.launches, expected.launches) << fast.report();
    EXPECT_EQ(work.calls, expected.calls) << fast.report();
    expect_compiled(subject, expected.sizes, counted(mode), work);
  }
}

TEST_P(Zoo, gives_eagers_results_while_its_host_code_runs) {
  const Case& expected = GetParam();
  const Subject subject(expected.model, at::kCPU, at::kFloat, expected.settings);
  const auto fast = sinter::compile(subject.model.forward, {.strict = true});
  for (uint64_t call = 1; call <= 4; ++call) {
    ASSERT_TRUE(subject.agrees(fast, subject.draw(expected.sizes, call))) << "call " << call;
  }
  EXPECT_GE(fast.stats().replayed, 2) << fast.report();
  EXPECT_EQ(fast.stats().breaks, 0) << fast.report();
}

const Case cases[] = {
    {"vgg16", {{"hidden", 64}}, {1, 3, 64, 64}, 17, 22},
    {"vit_b16", {{"depth", 2}, {"image_size", 64}}, {1, 3, 64, 64}, 7, 13},
    {"swin_t", {{"depth", 2}}, {1, 3, 64, 64}, 81, 74},
    {"swin_b", {{"depth", 2}}, {1, 3, 64, 64}, 81, 74},
    {"convnext_l", {{"depth", 2}, {"width", 32}}, {1, 3, 64, 64}, 36, 40},
    {"lstm", {{"layers", 2}}, {1, 8, 256}, 1, 3},
    {"gpt", {{"depth", 2}, {"steps", 2}}, {1, 8}, 30, 40},
    {"moe", {{"experts", 4}}, {1, 16, 512}, 10, 9},
};

INSTANTIATE_TEST_SUITE_P(Small, Zoo, ::testing::ValuesIn(cases),
                         [](const auto& parameter) { return parameter.param.model; });

}  // namespace
}  // namespace sinter::test
