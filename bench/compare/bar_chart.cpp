#include "bench/compare/bar_chart.h"

#include <algorithm>

#include "bench/compare/svg.h"

namespace sinter::bench {
namespace {

constexpr double panel_width = 360;
constexpr double row_height = 32;
constexpr double bar_height = 12;
constexpr double value_room = 72;  // right of the longest bar
constexpr double longest_bar = panel_width - value_room;
constexpr size_t longest_label = 52;

std::string title_of(const Bar& bar) { return bar.name + ": " + bar.value; }

std::string words(const std::string& what, const std::vector<Bar>& bars) {
  std::string text = what + ": ";
  for (const Bar& bar : bars) text += (&bar == &bars.front() ? "" : ", ") + bar.name + " " + bar.value;
  return text;
}

}  // namespace

std::string bar_chart(const std::string& what, const std::vector<Bar>& bars, std::optional<double> reference) {
  const double bottom = row_height * static_cast<double>(bars.size());
  const double x = reference.value_or(0) * longest_bar;
  Svg svg(panel_width, bottom + (reference ? 18 : 2), words(what, bars), "bars");
  for (size_t i = 0; i < bars.size(); ++i) {
    const double top = row_height * static_cast<double>(i);
    const double length = std::max(1.0, bars[i].length * longest_bar);
    svg.text(0, top + 11, shorten(bars[i].name, longest_label), "name");
    svg.bar(0, top + 16, length, bar_height, bars[i].classes, title_of(bars[i]));
    if (reference) svg.line(x, top + 14, x, top + 30, "reference");
    svg.text(length + 6, top + 26.5, bars[i].value, "value");
  }
  if (reference) svg.text(x, bottom + 14, "eager", "tick", x < 20 ? Anchor::start : Anchor::middle);
  return svg.str();
}

}  // namespace sinter::bench
