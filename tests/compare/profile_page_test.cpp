#include "bench/compare/profile_page.h"

#include <gtest/gtest.h>

#include "tests/compare/profile_rows.h"

namespace sinter::test {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ProfilePage, needs_nothing_but_itself_and_is_complete) {
  const std::string page = bench::profile_page(small_profile("net"));
  for (const char* outside : {"http://", "https://", "src=", "url(", "@import", "<script", "{{"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  for (const char* tag : {"section", "svg", "table", "figure", "div"})
    EXPECT_EQ(count_of(page, std::string("<") + tag), count_of(page, std::string("</") + tag)) << tag;
}

TEST(ProfilePage, begins_with_waits_and_what_to_do) {
  const std::string page = bench::profile_page(small_profile("net"));
  EXPECT_LT(page.find("The host waits"), page.find("<main>"));
  EXPECT_NE(page.find("Try: net"), std::string::npos);
  nlohmann::json without = small_profile("net");
  for (nlohmann::json& mode : without["modes"]) mode["waits"] = nlohmann::json::array();
  EXPECT_EQ(bench::profile_page(without).find("The host waits"), std::string::npos);
}

TEST(ProfilePage, tells_what_deterministic_algorithms_slow_down_and_what_recomputing_would_save) {
  const std::string page = bench::profile_page(small_profile("net"));
  EXPECT_NE(page.find("eager: net of net takes 5 ms a step, 1 times, 97 launches"), std::string::npos);
  EXPECT_NE(page.find("Recomputing"), std::string::npos);
  EXPECT_NE(page.find("<td>6 MiB</td>"), std::string::npos) << "what a segment holds";
  nlohmann::json without = small_profile("net");
  for (nlohmann::json& mode : without["modes"]) {
    mode["memory"]["recomputed"] = mode["segments"] = mode["slow"] = nlohmann::json::array();
  }
  const std::string plain = bench::profile_page(without);
  for (const char* text : {"Recomputing", "97 launches", "What compiled segments hold"}) {
    EXPECT_EQ(plain.find(text), std::string::npos) << text;
  }
}

TEST(ProfilePage, every_module_has_a_cell_in_every_column) {
  const std::string page = bench::profile_page(small_profile("net"));
  EXPECT_NE(page.find("<td>12</td><td>3</td><td>5 MiB</td></tr>"), std::string::npos) << "launches, then what it saved";
  EXPECT_NE(page.find("<td>12</td><td>3</td><td>–</td></tr>"), std::string::npos);
}

TEST(ProfilePage, texts_of_a_profile_are_shown_literally) {
  const std::string page =
      bench::profile_page(small_profile("\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{lead}}</svg>&lt;"));
  for (const char* markup : {"<img", "<script", "onerror=alert(1)>", "'><"})
    EXPECT_EQ(page.find(markup), std::string::npos) << markup;
  EXPECT_NE(page.find("{{lead}}"), std::string::npos) << "what is put in is not searched again";
}

TEST(ProfilePage, numbers_people_wait_for_have_no_exponent) {
  EXPECT_EQ(bench::profile_page(small_profile("net")).find("e+0"), std::string::npos);
}

TEST(ProfilePage, kernels_stand_against_limits_that_are_known) {
  nlohmann::json profile = small_profile("net");
  const std::string page = bench::profile_page(profile);
  // 3 GB and 4 TFLOP in a second, of 3 TB/s and 700 TFLOP/s.
  EXPECT_NE(page.find("<td>3</td><td>0 %</td><td>4</td><td>1 %</td>"), std::string::npos);
  EXPECT_NE(page.find("Kernels against the limits"), std::string::npos);
  for (nlohmann::json& mode : profile["modes"]) {
    mode["limits"] = {{"bytes_per_s", nullptr}, {"peaks", nlohmann::json::array()}, {"problem", "no memory"}};
    for (nlohmann::json& sum : mode["sums"]) sum["gain_ms"] = sum["least_ms"] = nullptr;
  }
  EXPECT_EQ(bench::profile_page(profile).find("Kernels against the limits"), std::string::npos);
}

TEST(ProfilePage, of_a_step_without_operators_says_so_with_empty_tables) {
  nlohmann::json empty = small_profile("net", 0);
  for (nlohmann::json& mode : empty["modes"]) {
    mode["phases_ms"] = {{"forward", 0.0}};
    mode["memory"]["owners"] = nlohmann::json::array();
    mode["memory"]["recomputed"] = nlohmann::json::array();
    mode["waits"] = mode["slow"] = mode["segments"] = nlohmann::json::array();
    mode["shares"] = nullptr;
  }
  EXPECT_EQ(count_of(bench::profile_page(empty), "<svg"), 0U);
}

}  // namespace
}  // namespace sinter::test
