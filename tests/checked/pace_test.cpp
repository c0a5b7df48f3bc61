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

TEST(Trial, a_program_that_does_two_things_in_turns_does_both_in_both_ways) {
  Trial trial;
  for (int i = 0; i < 1000; ++i) {
    const Trial::Way way = trial.next();
    const double does = i % 2 == 0 ? 1e-3 : 20e-3;
    trial.note(way, way == Trial::Way::compiled ? 0.5 * does : does);
  }
  EXPECT_EQ(trial.finding(), "");
}

TEST(Trial, calls_that_do_not_count_do_not_keep_it_comparing) {
  Trial trial;
  int eager = 0;
  for (int i = 0; i < 1000; ++i) eager += trial.next() == Trial::Way::eager ? 1 : 0;
  EXPECT_LT(eager, 200);
}

/// A call that takes so long besides what it records and compiles.
void call(Budget& budget, double seconds, double recording = 0, double compilation = 0) {
  if (recording > 0) budget.note_recording(recording);
  if (compilation > 0) budget.note_compilation(compilation);
  budget.note_call(seconds + recording + compilation, /*did_something_new=*/recording > 0);
}

TEST(Budget, a_program_that_never_does_the_same_is_recorded_a_few_times) {
  Budget budget(0.1);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(budget.allows_recording()) << i;
    call(budget, 1e-3, 1);
  }
  EXPECT_FALSE(budget.allows_recording());
}

TEST(Budget, what_the_first_calls_need_is_not_counted) {
  Budget budget(0.1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(budget.allows_compilation(/*instance=*/false)) << i;
    call(budget, 0.02, 0.1, 0.5);
  }
  EXPECT_TRUE(budget.allows_recording());
  EXPECT_TRUE(budget.allows_compilation(/*instance=*/false)) << "1 s is left of 2 s, which is 10 % of 1,000 calls";
}

TEST(Budget, later_segments_pay_with_what_has_run_or_a_thousand_calls_would) {
  Budget budget(0.1);
  for (int i = 0; i < 3; ++i) call(budget, 0.01);
  budget.note_compilation(0.6);
  EXPECT_FALSE(budget.allows_compilation(/*instance=*/false))
      << "another one would make it 1.2 s, and 1,000 calls take 10";
  for (int i = 0; i < 997; ++i) call(budget, 0.01);
  EXPECT_FALSE(budget.allows_compilation(/*instance=*/false));
  for (int i = 0; i < 220; ++i) call(budget, 0.01);
  EXPECT_TRUE(budget.allows_compilation(/*instance=*/false));
}

TEST(Budget, a_program_that_goes_on_doing_something_new_is_recorded_less_and_less) {
  Budget budget(0.1);
  double recorded = 0;
  for (int i = 0; i < 64000; ++i) {
    const double recording = budget.allows_recording() ? 0.01 : 0;
    recorded += recording;
    if (recording > 0) budget.note_recording(recording);
    budget.note_call(0.001 + recording, /*did_something_new=*/true);
  }
  EXPECT_NEAR(recorded, 0.7, 0.1) << "10 % of 1,000 calls and of six times as many";
}

TEST(Budget, recording_and_compiling_share_it) {
  Budget budget(0.1);
  for (int i = 0; i < 3; ++i) call(budget, 0.01);
  for (int i = 0; i < 600; ++i) call(budget, 0.01, 0.001);
  EXPECT_TRUE(budget.allows_compilation(/*instance=*/false)) << "0.4 s are left of 10 % of 1,000 calls";
  call(budget, 0.01, 0, 0.45);
  EXPECT_FALSE(budget.allows_compilation(/*instance=*/false));
  EXPECT_FALSE(budget.allows_recording());
  for (int i = 0; i < 500; ++i) call(budget, 0.01);
  EXPECT_TRUE(budget.allows_recording());
}

TEST(Budget, a_call_takes_what_it_takes_without_recording_and_compiling) {
  Budget budget(0.1);
  budget.note_recording(0.25);
  budget.note_compilation(0.5);
  EXPECT_DOUBLE_EQ(budget.note_call(1, true), 0.25);
  EXPECT_DOUBLE_EQ(budget.note_call(1, false), 1);
}

TEST(Budget, what_was_not_recorded_itself_waits_until_it_may_pay) {
  Budget budget(0.1);
  call(budget, 1e-5, 1e-5);
  EXPECT_TRUE(budget.allows_compilation(/*instance=*/true)) << "among the first calls";
  for (int i = 0; i < 3; ++i) call(budget, 1e-5, 1e-5);
  EXPECT_FALSE(budget.allows_compilation(/*instance=*/true));
  for (int i = 0; i < 25000; ++i) call(budget, 1e-5);
  EXPECT_TRUE(budget.allows_compilation(/*instance=*/true));
}

TEST(Budget, short_calls_compile_once_and_no_more) {
  Budget budget(0.1);
  call(budget, 5e-6, 1e-5);
  EXPECT_TRUE(budget.allows_compilation(/*instance=*/false));
  call(budget, 5e-6, 0, 0.06);
  EXPECT_FALSE(budget.allows_compilation(/*instance=*/false));
  for (int i = 0; i < 1000; ++i) call(budget, 5e-6);
  EXPECT_FALSE(budget.allows_compilation(/*instance=*/false));
}

TEST(Budget, a_first_call_of_many_small_segments_compiles_a_few) {
  Budget budget(0.1);
  call(budget, 1e-4);
  int compiled = 0;
  while (budget.allows_compilation(/*instance=*/false)) {
    budget.note_compilation(5e-3);
    ++compiled;
  }
  EXPECT_GE(compiled, 5);
  EXPECT_LE(compiled, 12);
}

}  // namespace
}  // namespace sinter::frontend
