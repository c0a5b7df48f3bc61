#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/codegen/cuda.h"
#include "tests/emulator/compare.h"
#include "tests/llvm/rows.h"

/// Kernels whose threads share rows, emulated and compared with the interpreter.
namespace sinter::test {
namespace {

TEST(RowKernels, give_what_the_interpreter_gives) {
  std::vector<RowTrial> trials;
  std::vector<KernelSource> sources;
  for_each_row_trial("cuda:0", [&](std::string name, const std::string& text) {
    const bool generic = trials.size() % 3 == 2;
    RowTrial trial = row_trial(std::move(name) + (generic ? " generic" : ""), text, trials.size() + 1);
    trial.kernel.generic_sizes = generic;
    sources.push_back(codegen::generate_cuda(trial.kernel, test_device()));
    trials.push_back(std::move(trial));
  });
  const Emulator emulator(sources);
  for (size_t i = 0; i < trials.size(); ++i) {
    run_emulated(emulator, i, trials[i].kernel, sources[i], trials[i].params);
    const std::string differs = difference(trials[i]);
    EXPECT_EQ(differs, "") << (differs.empty() ? "" : sources[i].text);
  }
}

}  // namespace
}  // namespace sinter::test
