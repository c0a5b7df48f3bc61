#include "sinter/compile_times.h"

#include <gtest/gtest.h>

#include "compiler/support/errors.h"
#include "frontend/report/compile_times_file.h"

namespace sinter {
namespace {

CompileTimes some_times() {
  CompileTimes times;
  times.program = "train";
  times.process = 7;
  times.started = 1e9;
  times.rows = {{"net", "capture", 2, 0.5},    {"net", "pass fuse", 1, 0.25}, {"net", "pass cse", 1, 0.125},
                {"loss", "pass fuse", 1, 1.0}, {"loss", "record", 1, 2.0},    {"loss", "other", 1, 0.0625}};
  times.kernels = {{"net", 3, 2, 1, 0.75}};
  times.events = {{CompileEvent::Kind::kernel, "fused", "disk", "net", 1, 99, 0.5, 0.25, 0}};
  return times;
}

std::string line_with(const std::string& text, const std::string& start) {
  const size_t begin = ("\n" + text).find("\n" + start);
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

TEST(CompileTimes, the_table_sums_passes_up_and_says_what_its_total_is) {
  const std::string text = some_times().text();
  EXPECT_NE(line_with(text, "passes").find("1.3750"), std::string::npos) << text;
  EXPECT_NE(line_with(text, "  fuse").find("1.2500"), std::string::npos) << text;
  EXPECT_NE(line_with(text, "total").find("3.9375"), std::string::npos) << text;
  EXPECT_NE(text.find("sum of the lines that are not indented"), std::string::npos);
  EXPECT_NE(text.find("3 built, 2 from the cache on disk, 1 shared"), std::string::npos) << text;
}

TEST(CompileTimes, columns_of_many_functions_stay_few_and_the_sum_holds_all) {
  CompileTimes times;
  for (int i = 0; i < 30; ++i) times.rows.push_back({"f" + std::to_string(i), "codegen", 1, 1.0});
  EXPECT_NE(line_with(times.text(), "total").find("30.0000"), std::string::npos) << times.text();
  EXPECT_LT(line_with(times.text(), "total").size(), 120U);
  EXPECT_NE(times.text().find("26 more functions"), std::string::npos);
}

TEST(CompileTimes, come_back_from_json_as_they_were) {
  CompileTimes times = some_times();
  times.events[0].function = "\"quoted\" <b>\\ \x01";
  const auto read = frontend::read_compile_times(times.json(), "file");
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read[0].json(), times.json());
  EXPECT_EQ(read[0].events.at(0).function, times.events[0].function);
  EXPECT_EQ(frontend::read_compile_times("[" + times.json() + "," + times.json() + "]", "file").size(), 2U);
}

TEST(CompileTimes, a_damaged_file_is_refused_by_its_name) {
  const std::string good = some_times().json();
  const auto changed = [&](const std::string& part, const std::string& other) {
    std::string text = good;
    return text.replace(text.find(part), part.size(), other);
  };
  for (const std::string& damaged :
       {std::string(), std::string("{}"), std::string("[1]"), std::string("null"), good.substr(0, good.size() / 2),
        changed("\"kernel\"", "\"colour\""), changed("\"dropped\": 0", "\"dropped\": 1.5"),
        changed("\"process\": 7", "\"process\": \"7\""), changed("\"rows\": [", "\"rows\": [3,"),
        std::string(100000, '[')}) {
    try {
      (void)frontend::read_compile_times(damaged, "times.json");
      FAIL() << damaged.substr(0, 200);
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 12), "times.json: ") << error.what();
    }
  }
}

}  // namespace
}  // namespace sinter
