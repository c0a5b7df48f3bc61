#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/command/program.h"

namespace sinter::test {
namespace {

using nlohmann::json;

/// Two processes that compiled, and what they wrote about it when they ended.
class CompileTimesCommand : public testing::Test {
 protected:
  void SetUp() override {
    const std::string setting = "SINTER_COMPILE_TIMES=" + folder_.path("times");
    for (const char* size : {"f32[64]", "f32[65]"}) {
      const Ran ran = sinter({"run", "gelu", "--device", "cpu", "--input", size}, {setting});
      ASSERT_EQ(ran.code, 0) << ran.err;
    }
  }

  Folder folder_;
};

double seconds_of(const json& process) {
  double sum = 0;
  for (const json& row : process.at("rows")) sum += row.at("seconds").get<double>();
  return sum;
}

TEST_F(CompileTimesCommand, joins_what_processes_of_a_folder_wrote_at_their_end) {
  const std::string file = folder_.path("all.json");
  const std::string trace = folder_.path("trace.json");
  const std::string page = folder_.path("page.html");
  const Ran ran =
      sinter({"compile-times", "--from", folder_.path("times"), "--json", file, "--trace", trace, "--html", page});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("2 processes"), std::string::npos) << ran.out;
  const json all = json::parse(text_of(file));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_NE(all.at(0).at("process"), all.at(1).at("process"));
  for (const json& process : all) EXPECT_NEAR(seconds_of(process), process.at("total_seconds").get<double>(), 1e-9);
  EXPECT_NE(text_of(page).find("gelu"), std::string::npos);
  const Ran again = sinter({"compile-times", "--from", file});
  EXPECT_EQ(again.out, ran.out) << "what was joined is joined again";
}

TEST_F(CompileTimesCommand, writes_a_trace_whose_events_nest_on_every_thread) {
  const std::string trace = folder_.path("trace.json");
  ASSERT_EQ(sinter({"compile-times", "--from", folder_.path("times"), "--trace", trace}).code, 0);
  std::map<std::pair<int, int64_t>, std::vector<std::pair<double, double>>> threads;  // begin and negative end
  std::set<std::string> kinds;
  const json whole = json::parse(text_of(trace));
  for (const json& event : whole.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    kinds.insert(event.at("cat").get<std::string>());
    const double begin = event.at("ts").get<double>();
    threads[{event.at("pid").get<int>(), event.at("tid").get<int64_t>()}].emplace_back(
        begin, -begin - event.at("dur").get<double>());
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"call", "entry", "kernel", "phase"}));
  constexpr double microsecond = 1;
  for (auto& [thread, events] : threads) {
    std::ranges::sort(events);
    std::vector<double> open;  // ends
    for (const auto& [begin, end] : events) {
      while (!open.empty() && open.back() <= begin + microsecond) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(-end, open.back() + microsecond);
      }
      open.push_back(-end);
    }
  }
}

TEST(CompileTimesCommands, measures_every_mode_and_says_when_it_pays) {
  const Folder folder;
  const std::string file = folder.path("all.json");
  const Ran ran = sinter({"compile-times", "gelu", "--device", "cpu", "--input", "f32[64]", "--mode", "default",
                          "--mode", "reduce-overhead", "--budget", "0.05", "--json", file});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json all = json::parse(text_of(file));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.at(1).at("measured").at("name"), "gelu reduce-overhead");
  EXPECT_EQ(all.at(1).at("kernels").at(0).at("disk"), 0) << "each mode begins with an empty cache";
  EXPECT_NE(ran.out.find("compiling "), std::string::npos) << ran.out;
}

TEST(CompileTimesCommands, say_what_is_wrong_in_a_line) {
  const Folder folder;
  const std::string damaged = folder.file("damaged.json", "{\"program\": \"x\", \"process\":");
  const std::string other = folder.file("other.json", "{\"rows\": []}");
  const std::string nothing = folder.file("nothing.json", "");
  const std::string none = folder.file("none.json", "[]");
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--from", damaged}, std::vector<std::string>{"--from", other},
        std::vector<std::string>{"--from", nothing}, std::vector<std::string>{"--from", none},
        std::vector<std::string>{"--from", "/nowhere"}, std::vector<std::string>{},
        std::vector<std::string>{"gelu", "--device", "cpu", "--mode", "fast"},
        std::vector<std::string>{"gelu", "--from", damaged},
        std::vector<std::string>{"--from", damaged, "--html", "/nowhere/page.html"}}) {
    std::vector<std::string> arguments = wrong;
    arguments.insert(arguments.begin(), "compile-times");
    const Ran ran = sinter(arguments);
    EXPECT_EQ(ran.code, 2) << ran.out;
    EXPECT_EQ(ran.err.substr(0, 8), "sinter: ");
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
  }
}

TEST(CompileTimesCommands, a_folder_that_cannot_be_written_costs_a_line_and_not_the_program) {
  const Ran ran =
      sinter({"run", "gelu", "--device", "cpu", "--input", "f32[64]"}, {"SINTER_COMPILE_TIMES=/proc/nowhere"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.err.find("sinter: SINTER_COMPILE_TIMES: "), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace sinter::test
