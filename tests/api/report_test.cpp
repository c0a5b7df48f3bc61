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

TEST_F(Reports, compile_times_add_up_by_phase_and_function) {
  auto fast = compile(erf_gelu, unlimited({.name = "timed gelu"}));
  for (const int64_t size : {8, 8, 9, 9, 9}) fast(at::ones({size}));
  ASSERT_EQ(fast.stats().entries, 2);
  int64_t built = 0;
  for (const auto& row : compile_times().rows) {
    if (row.function == "timed gelu" && row.phase == "codegen") built = row.count;
  }
  EXPECT_EQ(built, 2);
  EXPECT_NE(compile_times().text().find("timed gelu"), std::string::npos) << compile_times();
}

}  // namespace
}  // namespace sinter::test
