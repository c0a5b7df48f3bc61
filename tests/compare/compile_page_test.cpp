#include "bench/compare/compile_page.h"

#include <gtest/gtest.h>

#include <map>

#include "bench/compare/compile_costs.h"
#include "bench/compare/compile_trace.h"
#include "tests/compare/compile_rows.h"

namespace sinter::test {
namespace {

using nlohmann::json;

constexpr const char* hostile = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{lead}}</svg>&lt;";

size_t occurrences(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(CompilePage, needs_nothing_but_itself_and_is_complete) {
  const std::string page = bench::compile_page(two_processes("net"));
  for (const char* outside : {"http://", "https://", "src=", "url(", "@import", "<script", "{{"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  for (const char* tag : {"section", "svg", "table", "tbody", "figure", "div"})
    EXPECT_EQ(occurrences(page, std::string("<") + tag), occurrences(page, std::string("</") + tag)) << tag;
}

TEST(CompilePage, texts_of_a_process_are_shown_literally) {
  const std::string page = bench::compile_page(two_processes(hostile));
  for (const char* markup : {"<img", "<script", "onerror=alert(1)>", "'><"})
    EXPECT_EQ(page.find(markup), std::string::npos) << markup;
}

TEST(CompilePage, the_last_row_is_the_sum_of_all_functions_of_all_processes) {
  const std::string page = bench::compile_page(two_processes("net"));
  // 7 rows of 0.25 s and 7 of 0.5 s in each process
  EXPECT_EQ(occurrences(page, "all functions</th><td>5.2500</td>"), 2U);
  EXPECT_EQ(occurrences(page, "all functions</th><td>10.5000</td>"), 1U);
}

TEST(CompilePage, sums_up_functions_that_it_has_no_rows_for) {
  const std::string page = bench::compile_page(json::array({small_compile_times("net", 50)}));
  EXPECT_NE(page.find("10 more functions"), std::string::npos);
  EXPECT_NE(page.find("all functions</th><td>2231.2500</td>"), std::string::npos)
      << "0.25 s of 7 phases, 1 to 50 times";
}

TEST(CompilePage, says_when_compiling_has_paid_where_that_was_measured) {
  EXPECT_NE(bench::compile_page(two_processes("net")).find("2625 calls"), std::string::npos) << "5.25 s over 2 ms";
  const std::string without = bench::compile_page(json::array({small_compile_times("net")}));
  EXPECT_EQ(without.find("has paid"), std::string::npos);
}

TEST(CompilePage, of_a_process_that_compiled_nothing_has_no_plots) {
  EXPECT_EQ(occurrences(bench::compile_page(json::array({small_compile_times("net", 0)})), "<svg"), 0U);
}

TEST(CompileCosts, compiling_pays_after_what_it_took_over_what_a_call_gains) {
  EXPECT_EQ(bench::pays_off_after(1.0, 3.0, 2.0), 1000);
  EXPECT_EQ(bench::pays_off_after(1.0005, 3.0, 2.0), 1001);
  EXPECT_EQ(bench::pays_off_after(0, 3.0, 2.0), 0);
  EXPECT_EQ(bench::pays_off_after(1.0, 2.0, 2.0), std::nullopt);
  EXPECT_EQ(bench::pays_off_after(1.0, 2.0, 3.0), std::nullopt);
}

json events_of(const json& processes) { return json::parse(bench::compile_trace(processes)).at("traceEvents"); }

TEST(CompileTrace, has_a_row_group_for_each_process_on_one_clock) {
  std::map<int, std::string> names;
  std::map<int, double> first;
  for (const json& event : events_of(two_processes("net"))) {
    const int process = event.at("pid").get<int>();
    if (event.at("name") == "process_name") names[process] = event.at("args").at("name").get<std::string>();
    if (event.at("ph") == "X" && !first.contains(process)) first[process] = event.at("ts").get<double>();
  }
  EXPECT_EQ(names, (std::map<int, std::string>{{0, "net 4711"}, {1, "net default"}}));
  EXPECT_NEAR(first[0], 0, 1);
  EXPECT_NEAR(first[1], 0.5e6, 1);
}

TEST(CompileTrace, holds_every_event_with_names_as_they_are) {
  size_t found = 0;
  for (const json& event : events_of(json::array({small_compile_times(hostile)}))) {
    if (event.at("ph") != "X") continue;
    ++found;
    EXPECT_NE(event.at("name").get<std::string>().find(hostile), std::string::npos);
  }
  EXPECT_EQ(found, 8U);
}

}  // namespace
}  // namespace sinter::test
