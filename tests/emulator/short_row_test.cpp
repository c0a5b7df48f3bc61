#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/codegen/cuda.h"
#include "tests/emulator/compare.h"
#include "tests/llvm/rows.h"

/// Recurrences that are written out: kernels that run in the order of their values, emulated and compared with the
/// interpreter.
namespace sinter::test {
namespace {

struct Recurrence {
  int64_t rows;
  int64_t length;
  int64_t steps;
  std::string_view dtype;
};

/// A state that takes in a row of x at each step, and the sum of each state times a row of c; of f32, in which the
/// order of a sum shows, the largest product. These lie side by side; the state after the last step is a result too.
std::string text_of(const Recurrence& sizes) {
  const auto [rows, length, steps, dtype] = sizes;
  const std::string row = fmt::format("[{},{}]", rows, length);
  const std::string view = fmt::format(" : {}{}{{{},1}}\n", dtype, row, steps * length);
  std::string text = fmt::format("graph @scan on cuda:0 (%x: {0}[{1},{2},{3}], %c: {0}[{1},{2},{3}], %s: {0}{4}, ",
                                 dtype, rows, steps, length, row);
  text += fmt::format("%d: f32[{}]) -> (%y, %last) {{\n  %h0 = cast %s : f32{}\n", steps, row);
  std::string sums;
  for (int64_t t = 0; t < steps; ++t) {
    text += fmt::format("  %x{0} = view %x + {1}{2}  %c{0} = view %c + {1}{2}", t, t * length, view);
    text += fmt::format("  %d{0} = view %d + {0} : f32[1]\n  %e{0} = tanh %d{0} : f32[1]\n", t);
    text += fmt::format("  %xc{0} = cast %x{0} : f32{1}\n  %cc{0} = cast %c{0} : f32{1}\n", t, row);
    text += fmt::format("  %k{0} = mul %h{0}, 0.5 : f32{1}\n  %f{0} = mul %xc{0}, %e{0} : f32{1}\n", t, row);
    text += fmt::format("  %h{0} = add %k{1}, %f{1} : f32{2}\n", t + 1, t, row);
    text += fmt::format("  %p{0} = mul %h{1}, %cc{0} : f32{2}\n", t, t + 1, row);
    text += fmt::format("  %r{0} = reduce {2} %p{0} over 1 : f32[{1},1]\n", t, rows, dtype == "f32" ? "max" : "sum");
    text += fmt::format("  %y{0} = cast %r{0} : {1}[{2},1]\n", t, dtype, rows);
    sums += fmt::format("{}%y{}", t == 0 ? "" : ", ", t);
  }
  text += fmt::format("  %y = join {} over 1 : {}[{},{}]\n", sums, dtype, rows, steps);
  return text + fmt::format("  %last = cast %h{} : {}{}\n}}", steps, dtype, row);
}

TEST(ShortRows, run_in_the_order_of_their_values) {
  std::vector<RowTrial> trials;
  std::vector<KernelSource> sources;
  for (const Recurrence& sizes :
       {Recurrence{5, 16, 72, "f32"}, Recurrence{33, 16, 72, "f16"}, Recurrence{7, 8, 68, "f16"},
        Recurrence{3, 128, 67, "f32"}, Recurrence{40, 4, 70, "bf16"}, Recurrence{130, 2, 80, "f32"}}) {
    trials.push_back(
        row_trial(fmt::format("{} rows of {} {}, {} steps", sizes.rows, sizes.length, sizes.dtype, sizes.steps),
                  text_of(sizes), trials.size() + 1));
    sources.push_back(codegen::generate_cuda(trials.back().kernel, test_device()));
    EXPECT_NE(sources.back().comment.find("in the order of the values"), std::string::npos) << trials.back().name;
  }
  const Emulator emulator(sources);
  for (size_t i = 0; i < trials.size(); ++i) {
    run_emulated(emulator, i, trials[i].kernel, sources[i], trials[i].params);
    const std::string differs = difference(trials[i]);
    EXPECT_EQ(differs, "") << (differs.empty() ? "" : sources[i].text);
  }
}

TEST(ShortRows, store_neighbouring_sums_with_one_access) {
  const RowTrial trial = row_trial("scan", text_of({4, 16, 72, "f16"}), 1);
  const std::string text = codegen::generate_cuda(trial.kernel, test_device()).text;
  EXPECT_NE(text.find("pack<f16, 8, 16> y;"), std::string::npos) << text;
}

TEST(ShortRows, with_few_sums_are_gone_through_in_passes) {
  const RowTrial trial = row_trial("scan", text_of({4, 16, 5, "f16"}), 1);
  const std::string comment = codegen::generate_cuda(trial.kernel, test_device()).comment;
  EXPECT_EQ(comment.find("in the order of the values"), std::string::npos) << comment;
}

}  // namespace
}  // namespace sinter::test
