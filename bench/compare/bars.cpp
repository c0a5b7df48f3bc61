#include <fmt/format.h>

#include <algorithm>

#include "bench/compare/bar_chart.h"
#include "bench/compare/plots.h"

namespace sinter::bench {
namespace {

constexpr size_t families = 5;
constexpr size_t shades = 3;
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
  return bar_chart(fmt::format("Speed-up over eager, {} {}", one.model, one.shape), bars, 1 / largest);
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
  return bar_chart(fmt::format("Memory, {} {}", one.model, one.shape), bars, eager / largest);
}

}  // namespace sinter::bench
