#include <sstream>

#include "api_test.h"

namespace sinter::test {
namespace {

using Reports = Api;

TEST_F(Reports, the_text_names_function_mode_kernels_and_phases) {
  auto fast = compile(erf_gelu, trusted({.name = "gelu"}));
  fast(at::ones({8}));
  fast(at::ones({8}));
  std::ostringstream out;
  out << fast.report();
  for (const char* part : {"gelu  default  1 entry, 0 breaks", "f32[8]", "cpu", "capture", "kernel", "verified"}) {
    EXPECT_NE(out.str().find(part), std::string::npos) << part << "\n" << out.str();
  }
}

TEST_F(Reports, the_json_holds_every_entry) {
  auto fast = compile(erf_gelu, trusted({.name = "gelu"}));
  fast(at::ones({8}));
  fast(at::ones({9}));
  const auto json = fast.report().json();
  for (const char* part : {"\"function\": \"gelu\"", "\"f32[8]\"", "\"f32[s0]\"", "s0: size[0] of input 0",
                           "\"guard\": \"input 0: size[0]\""}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
}

TEST_F(Reports, compile_times_add_up_by_phase_and_function) {
  auto fast = compile(erf_gelu, trusted({.name = "timed gelu"}));
  fast(at::ones({8}));
  fast(at::ones({9}));
  fast(at::ones({9}));
  int64_t captures = 0;
  int64_t verifications = 0;
  for (const auto& row : compile_times().rows) {
    if (row.function != "timed gelu") continue;
    if (row.phase == "capture") captures = row.count;
    if (row.phase == "verify") verifications = row.count;
  }
  EXPECT_EQ(captures, 2);
  EXPECT_EQ(verifications, 1);
  EXPECT_NE(compile_times().text().find("timed gelu"), std::string::npos) << compile_times();
}

}  // namespace
}  // namespace sinter::test
