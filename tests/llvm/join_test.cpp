#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/llvm/harness.h"
#include "tests/llvm/joins.h"
#include "tests/llvm/rows.h"

/// Kernels that read operands of joins under guards, compiled and compared with the interpreter.
namespace sinter::test {
namespace {

constexpr int64_t room = 80;  ///< behind the last element, which no kernel may touch

TEST(JoinKernels, give_what_the_interpreter_gives) {
  uint64_t seed = 0;
  for (const JoinBody& body : join_bodies()) {
    for (const std::string_view dtype : {"f64", "f32", "f16", "bf16", "i64", "b8"}) {
      const RowTrial trial = row_trial(std::string(body.name), text_of(body, dtype, "cpu"), ++seed, room);
      for (const int width : host_widths()) {
        for (const bool generic : {false, true}) {
          RowTrial run = trial;
          run.kernel.generic_sizes = generic;
          run_compiled(run.kernel, run.params, width);
          EXPECT_EQ(difference(run), "") << body.name << " " << dtype << " " << width << (generic ? " generic" : "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace sinter::test
