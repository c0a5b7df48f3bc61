#include "frontend/report/compile_log.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "frontend/report/entry_times.h"

namespace sinter::frontend {
namespace {

using Time = CompileLog::Time;
using std::chrono::milliseconds;

/// An entry of one pass of 3 ms, codegen of 2 ms, and a kernel that another thread built.
void compile_one(CompileLog& log, const std::string& function) {
  EntryTimes times(log, function);
  const Time begin = std::chrono::steady_clock::now();
  times.phase("pass fuse", begin, begin + milliseconds(3));
  times.phase("codegen", begin + milliseconds(3), begin + milliseconds(5));
  times.kernel("fused_add", "built", begin, begin + milliseconds(1));
  times.finish("f32[8]");
}

/// The row that an event counts for; empty for a kernel, which counts for none.
std::string row_of(const CompileEvent& event) {
  switch (event.kind) {
    case CompileEvent::Kind::call:
      return "capture";
    case CompileEvent::Kind::entry:
      return "other";
    case CompileEvent::Kind::phase:
      return event.name;
    case CompileEvent::Kind::kernel:
      break;
  }
  return "";
}

TEST(CompileLog, rows_are_the_sums_of_its_events_and_the_total_is_the_sum_of_rows) {
  CompileLog log;
  for (const char* function : {"one", "two", "one"}) compile_one(log, function);
  log.add_call("one", std::chrono::steady_clock::now(), 0.25);
  const CompileTimes times = log.snapshot();
  std::map<std::pair<std::string, std::string>, double> sums;
  double counted = 0;
  for (const CompileEvent& event : times.events) {
    counted += event.counted;
    if (!row_of(event).empty()) sums[{event.function, row_of(event)}] += event.counted;
  }
  ASSERT_EQ(sums.size(), times.rows.size());
  for (const auto& row : times.rows) EXPECT_DOUBLE_EQ((sums[{row.function, row.phase}]), row.seconds) << row.phase;
  EXPECT_NEAR(times.total(), counted, 1e-12);
  EXPECT_GE(times.total(), 0.25 + 3 * 0.005);
}

TEST(CompileLog, phases_of_an_entry_and_what_lies_between_them_add_up_to_it) {
  CompileLog log;
  EntryTimes times(log, "f");
  const Time begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(milliseconds(2));
  times.phase("codegen", begin, std::chrono::steady_clock::now());
  std::this_thread::sleep_for(milliseconds(2));
  times.finish("f32[8]");
  const CompileTimes seen = log.snapshot();
  ASSERT_EQ(seen.events.size(), 2U);
  const CompileEvent& entry = seen.events.back();
  EXPECT_NEAR(seen.events.front().counted + entry.counted, entry.duration, 1e-9);
  EXPECT_GT(entry.counted, 0);
}

TEST(CompileLog, counts_kernels_by_function_and_origin_and_not_in_the_total) {
  CompileLog log;
  EntryTimes times(log, "f");
  const Time now = std::chrono::steady_clock::now();
  for (const char* origin : {"built", "disk", "shared", "shared"})
    times.kernel("k", origin, now, now + milliseconds(4));
  times.finish("");
  const CompileTimes seen = log.snapshot();
  ASSERT_EQ(seen.kernels.size(), 1U);
  EXPECT_EQ(seen.kernels[0].built, 1);
  EXPECT_EQ(seen.kernels[0].disk, 1);
  EXPECT_EQ(seen.kernels[0].shared, 2);
  EXPECT_NEAR(seen.kernels[0].seconds, 0.016, 1e-9);
  ASSERT_EQ(seen.rows.size(), 1U);
  EXPECT_EQ(seen.rows[0].phase, "other");
}

TEST(CompileLog, a_phase_after_the_end_of_its_entry_is_seen_at_once) {
  CompileLog log;
  EntryTimes times(log, "f");
  times.finish("f32[8]");
  const Time now = std::chrono::steady_clock::now();
  times.phase("record", now, now + milliseconds(7));
  const CompileTimes seen = log.snapshot();
  EXPECT_EQ(seen.events.back().name, "record");
  EXPECT_EQ(seen.events.back().entry, 1);
  EXPECT_GE(seen.total(), 0.007);
}

TEST(CompileLog, forgets_old_events_and_keeps_their_sums) {
  CompileLog log(5, 1000);
  for (int i = 0; i < 100; ++i) compile_one(log, "f");
  const CompileTimes seen = log.snapshot();
  EXPECT_EQ(seen.events.size(), 5U);
  EXPECT_EQ(seen.events.back().entry, 100);
  EXPECT_EQ(seen.dropped, 400 - 5);
  EXPECT_EQ(seen.kernels.at(0).built, 100);
  EXPECT_GE(seen.total(), 100 * 0.005);
}

TEST(CompileLog, sums_up_functions_beyond_the_first_ones_as_one) {
  CompileLog log(10, 3);
  for (int i = 0; i < 50; ++i) compile_one(log, "f" + std::to_string(i));
  std::set<std::string> functions;
  for (const auto& row : log.snapshot().rows) functions.insert(row.function);
  EXPECT_EQ(functions, (std::set<std::string>{"f0", "f1", "f2", "(other functions)"}));
  EXPECT_EQ(log.snapshot().kernels.size(), 4U);
  EXPECT_GE(log.snapshot().total(), 50 * 0.005);
}

TEST(CompileLog, takes_entries_of_several_threads_while_it_is_read) {
  constexpr int threads = 8, rounds = 50;
  CompileLog log;
  {
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&log] {
        for (int round = 0; round < rounds; ++round) compile_one(log, "f");
      });
    }
    for (int round = 0; round < rounds; ++round) (void)log.snapshot();
  }
  const CompileTimes seen = log.snapshot();
  std::set<int64_t> entries, numbers;
  for (const CompileEvent& event : seen.events) {
    entries.insert(event.entry);
    numbers.insert(event.thread);
  }
  EXPECT_EQ(entries.size(), static_cast<size_t>(threads * rounds));
  EXPECT_EQ(numbers.size(), static_cast<size_t>(threads));
  EXPECT_EQ(seen.kernels.at(0).built, threads * rounds);
}

TEST(CompileLog, tells_of_kernels_that_other_threads_built_with_their_threads) {
  CompileLog log;
  EntryTimes times(log, "f");
  std::jthread([&times] {
    const Time now = std::chrono::steady_clock::now();
    times.kernel("k", "built", now, now);
  }).join();
  times.finish("");
  const CompileTimes seen = log.snapshot();
  EXPECT_NE(seen.events.front().thread, seen.events.back().thread);
}

}  // namespace
}  // namespace sinter::frontend
