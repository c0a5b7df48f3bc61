#include <map>
#include <sstream>

#include "api_test.h"

namespace sinter::test {
namespace {

using Reports = Api;

TEST_F(Reports, the_text_names_function_mode_kernels_and_phases) {
  auto fast = compile(erf_gelu, unlimited({.name = "gelu"}));
  for (int call = 0; call < 3; ++call) fast(at::ones({8}));
  std::ostringstream out;
  out << fast.report();
  for (const char* part :
       {"gelu  default  1 entry, 0 breaks", "cpu", "compile", "codegen", "kernel", "2 replayed", "host code"}) {
    EXPECT_NE(out.str().find(part), std::string::npos) << part << "\n" << out.str();
  }
}

TEST_F(Reports, the_json_holds_every_entry) {
  auto fast = compile([](const at::Tensor& x) { return at::relu(x) + 1; }, unlimited({.name = "relu"}));
  for (const int64_t size : {8, 8, 9, 9}) fast(at::ones({size}));
  const auto report = fast.report();
  const auto json = report.json();
  ASSERT_EQ(report.entries.size(), 2) << report;
  for (const auto& entry : report.entries) EXPECT_NE(json.find('"' + entry.signature + '"'), std::string::npos) << json;
  for (const char* part :
       {"\"function\": \"relu\"", "s0: size[0] of ", "another branch: operator 1, aten::relu was f32[8], is f32[9]"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
}

TEST_F(Reports, choices_stand_with_the_time_of_every_way) {
  EntryReport entry;
  entry.compiled = true;
  entry.choices = {
      {"f16[64,32] x f16[32,8] + bias", "cuBLASLt 1", "measured", 12, {{"LibTorch", 8.25}, {"cuBLASLt 1", 7}}},
      {"f16[1,32] x f16[32,8], relu", "cuBLASLt 0", "not measured", 1, {}}};
  const Report report{.function = "f", .mode = "max-autotune", .entries = {entry}, .failed_at = {}, .notes = {}};
  for (const char* line :
       {"choice    f16[64,32] x f16[32,8] + bias x12: cuBLASLt 1, measured (LibTorch 8.2 us, cuBLASLt 1 7.0)\n",
        "choice    f16[1,32] x f16[32,8], relu x1: cuBLASLt 0, not measured\n"}) {
    EXPECT_NE(report.text().find(line), std::string::npos) << report.text();
  }
  for (const char* part : {"\"chosen\": \"cuBLASLt 1\"", "\"microseconds\": 8.25", "\"origin\": \"not measured\""}) {
    EXPECT_NE(report.json().find(part), std::string::npos) << part << "\n" << report.json();
  }
}

TEST_F(Reports, compile_times_add_up_by_phase_and_function) {
  auto fast = compile(erf_gelu, unlimited({.name = "timed gelu"}));
  for (const int64_t size : {8, 8, 9, 9, 9}) fast(at::ones({size}));
  ASSERT_EQ(fast.stats().entries, 2);
  int64_t built = 0;
  for (const auto& row : compile_times().rows) {
    if (row.function == "timed gelu" && row.phase == "codegen") built = row.count;
  }
  EXPECT_EQ(built, 2);
  CompileTimes own = compile_times();  // the table of a process leaves out functions that took little
  std::erase_if(own.rows, [](const auto& row) { return row.function != "timed gelu"; });
  EXPECT_NE(own.text().find("timed gelu"), std::string::npos) << own;
}

TEST_F(Reports, compile_times_tell_of_calls_entries_phases_and_kernels_of_a_function) {
  auto fast = compile(erf_gelu, unlimited({.name = "told gelu"}));
  for (const int64_t size : {80, 80, 80}) fast(at::ones({size}));
  ASSERT_EQ(fast.stats().entries, 1);
  std::map<CompileEvent::Kind, int> kinds;
  double phases = 0;
  double entry = 0;
  for (const CompileEvent& event : compile_times().events) {
    if (event.function != "told gelu") continue;
    ++kinds[event.kind];
    if (event.kind == CompileEvent::Kind::phase) phases += event.duration;
    if (event.kind == CompileEvent::Kind::entry) entry = event.duration;
    if (event.kind == CompileEvent::Kind::entry) {
      EXPECT_EQ(event.name, fast.report().entries.at(0).signature);
    }
  }
  EXPECT_GE(kinds[CompileEvent::Kind::call], 1);
  EXPECT_EQ(kinds[CompileEvent::Kind::entry], 1);
  EXPECT_EQ(kinds[CompileEvent::Kind::kernel], 1);
  EXPECT_GT(phases, 0);
  EXPECT_LE(phases, entry);
}

TEST_F(Reports, compile_times_do_not_grow_while_calls_are_replayed) {
  auto fast = compile(erf_gelu, unlimited({.name = "steady gelu"}));
  for (int call = 0; call < 4; ++call) fast(at::ones({8}));
  const auto before = compile_times();
  for (int call = 0; call < 10; ++call) fast(at::ones({8}));
  EXPECT_EQ(compile_times().total(), before.total());
  EXPECT_EQ(compile_times().events.size(), before.events.size());
}

}  // namespace
}  // namespace sinter::test
