#include <fmt/format.h>

#include <algorithm>

#include "bench/compare/plots.h"

namespace sinter::bench {
namespace {

constexpr double panel_width = 360;
constexpr double row_height = 32;
constexpr double bar_height = 12;
constexpr double value_room = 72;  // right of the longest bar
constexpr double longest_bar = panel_width - value_room;
constexpr size_t families = 5;
constexpr size_t shades = 3;
constexpr size_t longest_label = 52;

struct Bar {
  std::string name;
  std::string classes;
  double length = 0;  ///< 0 to 1
  std::string value;
};

std::string title_of(const Bar& bar) { return bar.name + ": " + bar.value; }

std::string words(const std::string& what, const std::vector<Bar>& bars) {
  std::string text = what + ": ";
  for (const Bar& bar : bars) text += (&bar == &bars.front() ? "" : ", ") + bar.name + " " + bar.value;
  return text;
}

/// Name above, bar and value below, one row each. `reference`: where the dashed line of eager stands, 0 to 1.
std::string draw(const std::string& label, const std::vector<Bar>& bars, double reference) {
  const double bottom = row_height * static_cast<double>(bars.size());
  const double x = reference * longest_bar;
  Svg svg(panel_width, bottom + 18, label, "bars");
  for (size_t i = 0; i < bars.size(); ++i) {
    const double top = row_height * static_cast<double>(i);
    const double length = std::max(1.0, bars[i].length * longest_bar);
    svg.text(0, top + 11, shorten(bars[i].name, longest_label), "name");
    svg.bar(0, top + 16, length, bar_height, bars[i].classes, title_of(bars[i]));
    svg.line(x, top + 14, x, top + 30, "reference");
    svg.text(length + 6, top + 26.5, bars[i].value, "value");
  }
  svg.text(x, bottom + 14, "eager", "tick", x < 20 ? Anchor::start : Anchor::middle);
  return svg.str();
}

}  // namespace

Looks::Looks(const Comparison& comparison) {
  std::vector<std::pair<std::string, size_t>> members;  // of each family so far
  const auto add = [&](const Contender& contender) {
    const auto known = [&](const Named& named) { return named.name == contender.name; };
    if (std::any_of(all_.begin(), all_.end(), known)) return;
    const auto kin = [&](const auto& member) { return member.first == contender.row.peer; };
    auto family = std::find_if(members.begin(), members.end(), kin);
    if (family == members.end()) family = members.insert(members.end(), {contender.row.peer, 0});
    const auto hue = static_cast<size_t>(family - members.begin());
    const std::string classes = fmt::format("hue{} shade{}", hue % families, family->second % shades);
    all_.push_back({contender.name, {classes, all_.size() % shape_count}});
    ++family->second;
  };
  for (size_t i = 0; i < comparison.results.size(); ++i) {
    for (const Case& one : comparison.cases) {
      for (const Contender& contender : one.contenders) {
        if (contender.results == i) add(contender);
      }
    }
  }
}

const Look& Looks::of(const std::string& name) const {
  return std::find_if(all_.begin(), all_.end(), [&](const Named& named) { return named.name == name; })->look;
}

double largest_speedup(const Comparison& comparison) {
  double largest = 1;
  for (const Case& one : comparison.cases) {
    for (const Contender& contender : one.contenders) largest = std::max(largest, contender.speedup);
  }
  return largest;
}

std::string speedup_bars(const Case& one, const Looks& looks, double largest) {
  std::vector<Bar> bars;
  for (const Contender& contender : one.contenders) {
    bars.push_back({contender.name, looks.of(contender.name).classes, contender.speedup / largest,
                    fmt::format("{:.2f}×", contender.speedup)});
  }
  return draw(words(fmt::format("Speed-up over eager, {} {}", one.model, one.shape), bars), bars, 1 / largest);
}

namespace {

/// What one contender's process took, and eager's beside it; by the driver's count where everybody has that.
struct Memory {
  std::optional<double> own, eager;
};

std::vector<Memory> memory_of(const std::vector<Contender>& rows) {
  const auto by_driver = [](const Contender& one) { return one.row.device_bytes && one.row.eager_device_bytes; };
  const bool all = std::all_of(rows.begin(), rows.end(), by_driver);
  std::vector<Memory> memory;
  for (const auto& [name, results, row, speedup] : rows) {
    memory.push_back(all ? Memory{row.device_bytes, row.eager_device_bytes}
                         : Memory{row.allocated_bytes, row.eager_allocated_bytes});
  }
  return memory;
}

}  // namespace

std::string memory_bars(const Case& one, const Looks& looks) {
  const std::vector<Memory> memory = memory_of(one.contenders);
  const auto measured = [](const Memory& row) { return row.own && row.eager; };
  const auto first = std::find_if(memory.begin(), memory.end(), measured);
  if (first == memory.end()) return "";
  const double eager = *first->eager;
  double largest = std::max(1.0, eager);
  for (const Memory& row : memory) largest = std::max(largest, row.own.value_or(0));
  std::vector<Bar> bars = {{"eager", "eager", eager / largest, show_bytes(eager)}};
  for (size_t i = 0; i < memory.size(); ++i) {
    const Contender& contender = one.contenders[i];
    const auto own = memory[i].own;
    bars.push_back({contender.name, looks.of(contender.name).classes, own.value_or(0) / largest,
                    own ? show_bytes(*own) : "not measured"});
  }
  return draw(words(fmt::format("Memory, {} {}", one.model, one.shape), bars), bars, eager / largest);
}

}  // namespace sinter::bench
