#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/codegen/cuda.h"
#include "tests/emulator/compare.h"
#include "tests/llvm/rows.h"

/// Kernels whose threads share rows, emulated and compared with the interpreter.
namespace sinter::test {
namespace {

/// Emulates kernels and compares their outputs with the interpreter's.
void expect_agreement(std::vector<RowTrial>& trials) {
  std::vector<KernelSource> sources;
  for (const RowTrial& trial : trials) sources.push_back(codegen::generate_cuda(trial.kernel, test_device()));
  const Emulator emulator(sources);
  for (size_t i = 0; i < trials.size(); ++i) {
    run_emulated(emulator, i, trials[i].kernel, sources[i], trials[i].params);
    const std::string differs = difference(trials[i]);
    EXPECT_EQ(differs, "") << (differs.empty() ? "" : sources[i].text);
  }
}

/// A norm of {R} rows of {N} elements, and sums and maxima of columns over {G} groups of {P} rows.
constexpr std::string_view grouped = R"(graph @grouped on cuda:0 (%x: {T}[{R},{N}], %w: {T}[{N}]) -> (%y, %s, %m) {{
  %xc = cast %x : f32[{R},{N}]
  %wc = cast %w : f32[{N}]
  %q = mul %xc, %xc : f32[{R},{N}]
  %sum = reduce sum %q over 1 : f32[{R},1]
  %more = add %sum, 1.0 : f32[{R},1]
  %scale = rsqrt %more : f32[{R},1]
  %n = mul %xc, %scale : f32[{R},{N}]
  %p = mul %n, %wc : f32[{R},{N}]
  %y = cast %p : {T}[{R},{N}]
  %g = view %n + 0 : f32[{G},{P},{N}]
  %s = reduce sum %g over 1 : f32[{G},1,{N}]
  %h = view %xc + 0 : f32[{G},{P},{N}]
  %m = reduce max %h over 1 : f32[{G},1,{N}]
}})";

TEST(RowKernels, join_groups_of_rows) {
  struct Sizes {
    int64_t groups, rows, length;
  };
  std::vector<RowTrial> trials;
  for (const Sizes& sizes : {Sizes{3, 4, 8}, Sizes{7, 3, 64}, Sizes{2, 5, 7}, Sizes{40, 2, 100}, Sizes{3, 6, 768},
                             Sizes{2, 3, 1000}, Sizes{1, 4, 4104}, Sizes{2, 2, 1023}}) {
    for (const std::string_view dtype : {"f32", "f16"}) {
      using fmt::arg;
      trials.push_back(
          row_trial(fmt::format("{} x {} rows of {} {}", sizes.groups, sizes.rows, sizes.length, dtype),
                    fmt::format(fmt::runtime(grouped), arg("T", dtype), arg("R", sizes.groups * sizes.rows),
                                arg("N", sizes.length), arg("G", sizes.groups), arg("P", sizes.rows)),
                    trials.size() + 1));
      EXPECT_EQ(trials.back().kernel.group_rows(), sizes.rows);
    }
  }
  expect_agreement(trials);
}

TEST(RowKernels, give_what_the_interpreter_gives) {
  std::vector<RowTrial> trials;
  for_each_row_trial("cuda:0", [&](std::string name, const std::string& text) {
    const bool generic = trials.size() % 3 == 2;
    trials.push_back(row_trial(std::move(name) + (generic ? " generic" : ""), text, trials.size() + 1));
    trials.back().kernel.generic_sizes = generic;
  });
  expect_agreement(trials);
}

}  // namespace
}  // namespace sinter::test
