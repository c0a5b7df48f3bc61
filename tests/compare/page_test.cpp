#include "bench/compare/page.h"

#include <gtest/gtest.h>

#include "bench/compare/svg.h"
#include "tests/compare/rows.h"

namespace sinter::test {
namespace {

size_t times(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// The page's text from the section with this id to the next section.
std::string section(const std::string& page, const std::string& id) {
  const size_t from = page.find("<section id=\"" + id + "\"");
  return from == std::string::npos ? "" : page.substr(from, page.find("</section>", from) - from);
}

bench::Comparison two_cases() {
  Json other = row("other", "default", 3.0);
  return joined({document({row("net", "default", 2.0), row("net", "reduce-overhead", 1.0), other}),
                 document({row("net", "frozen", 1.5, "torchscript"), row("alien", "frozen", 1.0, "torchscript")},
                          {{"torch", "2.9.0"}})});
}

TEST(Page, needs_nothing_but_itself) {
  const std::string page = to_html(two_cases());
  for (const char* outside : {"http://", "https://", "src=", "url(", "@import", "<script", "<object", "<iframe"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

TEST(Page, every_template_part_is_filled) {
  const std::string page = to_html(two_cases());
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(times(page, "<section"), times(page, "</section>"));
  EXPECT_EQ(times(page, "<svg"), times(page, "</svg>"));
}

TEST(Page, every_plot_has_a_mark_for_every_contender) {
  const std::string page = to_html(two_cases());
  EXPECT_EQ(times(section(page, "speedup"), "class=\"mark bar "), 4U);
  EXPECT_EQ(times(section(page, "gain"), "class=\"mark point "), 8U) << "a wide and a narrow plot of four rows";
  EXPECT_EQ(times(section(page, "breakeven"), "class=\"mark curve "), 6U) << "four rows and eager in two plots";
  EXPECT_EQ(times(section(page, "memory"), "class=\"mark bar "), 6U) << "four rows and eager in two plots";
}

TEST(Page, plots_say_in_words_what_they_show) {
  const std::string page = to_html(two_cases());
  EXPECT_NE(page.find("aria-label=\"Speed-up over eager, net f16[1,3,224,224]: sinter default 2.00×, sinter "
                      "reduce-overhead 4.00×, torchscript frozen 2.67×\""),
            std::string::npos);
  EXPECT_EQ(times(page, "role=\"img\" aria-label=\"\""), 0U);
}

TEST(Page, warnings_rows_without_a_partner_and_machines_are_shown) {
  const std::string page = to_html(two_cases());
  EXPECT_NE(page.find("<li>torch differs: 2.11.0 for sinter, 2.9.0 for torchscript (file1.json)</li>"),
            std::string::npos);
  EXPECT_NE(section(page, "unmatched").find("alien"), std::string::npos);
  EXPECT_NE(section(page, "machines").find("<td>2.9.0</td>"), std::string::npos);
  EXPECT_EQ(section(to_html(joined({document({row("net", "default", 2.0)})})), "unmatched"), "");
}

TEST(Page, the_table_has_a_line_for_every_contender) {
  EXPECT_EQ(times(section(to_html(two_cases()), "numbers"), "<tr><th scope=\"row\">"), 4U);
}

TEST(Page, memory_that_nobody_measured_is_said) {
  Json bare = row("net", "default", 2.0);
  bare.erase("peak_bytes");
  EXPECT_NE(section(to_html(joined({document({bare})})), "memory").find("No file says."), std::string::npos);
}

TEST(Page, texts_of_result_files_are_shown_literally) {
  const std::string attack = "\"'><img src=x onerror=alert(1)><script>alert(2)</script>{{table}}</title></svg>&lt;";
  Json own = row(attack, attack, 2.0);
  own["shape"] = attack;
  own["device"] = attack;
  Json peer = own;
  peer["peer"] = attack;
  Json stray = row(attack + "2", attack, 1.0, attack);
  const std::string page = to_html(joined({document({own}, {{attack, attack}, {"gpu", attack}, {"torch", attack}}),
                                           document({peer, stray}, {{attack, 1}, {"gpu", {attack}}})}));
  for (const char* markup : {"<img", "<script", "onerror=alert(1)>", "'><", "</title></svg>"})
    EXPECT_EQ(page.find(markup), std::string::npos) << markup;
  EXPECT_NE(page.find("{{table}}"), std::string::npos) << "what is put in is not searched again";
  EXPECT_EQ(times(page, "<table"), 3U);
}

TEST(Page, the_widest_numbers_have_a_place) {
  Json tiny = row("net", "default", 1e-30);
  tiny["eager_cold_s"] = 0;
  Json huge = row("net", "reduce-overhead", 1e30);
  huge["cold_s"] = 1e30;
  huge["peak_bytes"] = 1e30;
  const std::string page = to_html(joined({document({tiny, huge})}));
  const std::string plots = page.substr(page.find("<section"));
  for (const char* broken : {"nan", "inf\"", "inf "}) EXPECT_EQ(plots.find(broken), std::string::npos) << broken;
}

TEST(Svg, ticks_are_round_and_few) {
  const bench::LogScale wide({3e-3, 400}, 0, 100);
  EXPECT_EQ(wide.low(), 2e-3);
  EXPECT_EQ(wide.high(), 500);
  EXPECT_EQ(wide.ticks(6).size(), 5U) << "0.01 to 100";
  const bench::LogScale narrow({1.5, 4}, 0, 100);
  EXPECT_EQ(narrow.ticks(6), (std::vector<double>{1, 2, 5}));
  EXPECT_DOUBLE_EQ(narrow(1), 0);
  EXPECT_DOUBLE_EQ(narrow(5), 100);
}

TEST(Svg, numbers_are_short) {
  EXPECT_EQ(bench::show_bytes(0), "0 B");
  EXPECT_EQ(bench::show_bytes(1536), "1.5 KiB");
  EXPECT_EQ(bench::show_bytes(1342177280), "1.25 GiB");
  EXPECT_EQ(bench::show_seconds(0.04), "40 ms");
  EXPECT_EQ(bench::show_seconds(2e-6), "2 µs");
  EXPECT_EQ(bench::show_seconds(1000), "1000 s");
  EXPECT_EQ(bench::show_count(1000), "1000");
  EXPECT_EQ(bench::show_count(1e6), "1M");
}

TEST(Svg, a_shortened_text_keeps_whole_characters) {
  EXPECT_EQ(bench::shorten("abc", 3), "abc");
  EXPECT_EQ(bench::shorten("abcd", 3), "ab…");
  EXPECT_EQ(bench::shorten("äöüß", 3), "äö…");
}

}  // namespace
}  // namespace sinter::test
