// How often a function records, and which way its calls go: times are given, none is taken.
#include <gtest/gtest.h>

#include <string>

#include "frontend/replay/budget.h"
#include "frontend/replay/trial.h"

namespace sinter::frontend {
namespace {

/// Makes calls that take so long; how many of them went compiled.
int compiled_calls(Trial& trial, int calls, double compiled, double eager) {
  int count = 0;
  for (int i = 0; i < calls; ++i) {
    const Trial::Way way = trial.next();
    const bool went_compiled = way == Trial::Way::compiled;
    count += went_compiled ? 1 : 0;
    trial.note(way, went_compiled ? compiled : eager);
  }
  return count;
}

TEST(Trial, compiled_calls_that_pay_go_on) {
  Trial trial;
  EXPECT_GE(compiled_calls(trial, 1000, 1e-3, 2e-3), 970);
  EXPECT_EQ(trial.finding(), "");
}

TEST(Trial, compiled_calls_that_do_not_pay_are_left_to_eager) {
  Trial trial;
  EXPECT_LE(compiled_calls(trial, 1000, 2e-3, 1e-3), 60);
  EXPECT_NE(trial.finding().find("2 ms compiled, 1 ms eager"), std::string::npos) << trial.finding();
}

TEST(Trial, what_is_as_fast_as_eager_takes_more_calls_to_tell) {
  Trial trial;
  EXPECT_GE(compiled_calls(trial, 1000, 1.01e-3, 1e-3), 900);
  Trial slower;
  EXPECT_LE(compiled_calls(slower, 1000, 1.1e-3, 1e-3), 120);
}

TEST(Trial, compares_again) {
  Trial trial;
  (void)compiled_calls(trial, 300, 2e-3, 1e-3);
  ASSERT_NE(trial.finding(), "");
  EXPECT_GE(compiled_calls(trial, 1000, 0.1e-3, 1e-3), 500);
  EXPECT_EQ(trial.finding(), "");
}

TEST(Trial, calls_that_do_not_count_do_not_keep_it_comparing) {
  Trial trial;
  int eager = 0;
  for (int i = 0; i < 1000; ++i) eager += trial.next() == Trial::Way::eager ? 1 : 0;
  EXPECT_LT(eager, 200);
}

TEST(Budget, the_first_calls_are_free) {
  Budget budget(0.1);
  for (int call = 0; call < 8; ++call) {
    EXPECT_TRUE(budget.allows()) << call;
    budget.note_recording(1);
    budget.note_call(1e-3);
  }
  EXPECT_FALSE(budget.allows());  // nothing came twice
}

TEST(Budget, later_ones_pay_with_what_has_run) {
  Budget budget(0.1);
  for (int call = 0; call < 3; ++call) {
    EXPECT_TRUE(budget.allows()) << call;
    budget.note_compilation(1);
    budget.note_call(1);
  }
  EXPECT_FALSE(budget.allows());
  for (int call = 0; call < 27; ++call) budget.note_call(1);
  EXPECT_TRUE(budget.allows());
  budget.note_compilation(1);
  EXPECT_FALSE(budget.allows());
}

TEST(Budget, a_first_call_of_many_small_segments_compiles_a_few) {
  Budget budget(0.1);
  budget.note_call(1e-3);
  int compiled = 0;
  while (budget.allows()) {
    budget.note_compilation(5e-3);
    ++compiled;
  }
  EXPECT_GE(compiled, 5);
  EXPECT_LE(compiled, 12);
}

}  // namespace
}  // namespace sinter::frontend
