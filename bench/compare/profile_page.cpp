#include "bench/compare/profile_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/compare/bar_chart.h"
#include "bench/compare/html.h"
#include "bench/compare/svg.h"

namespace sinter::bench {
namespace {

using Json = nlohmann::json;

constexpr size_t most_lines = 10;      ///< in the plot
constexpr size_t most_operators = 60;  ///< in the table
constexpr double least_share = 0.001;  ///< of a step that a module's row takes
constexpr const char* time_columns[] = {"forward_ms", "backward_ms", "optimizer_ms", "compiled_ms"};

std::string text_of(const Json& from, const char* key) { return from.at(key).get<std::string>(); }
double number_of(const Json& from, const char* key) { return from.at(key).get<double>(); }

/// Three digits, never an exponent for what people wait for.
std::string short_number(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}
std::string milliseconds(double value) { return short_number(value) + " ms"; }

std::string path_of(const Json& mode, const Json& module) {
  const auto position = module.get<int64_t>();
  if (position < 0) return "no module";
  const auto path = text_of(mode.at("modules").at(static_cast<size_t>(position)), "path");
  return path.empty() ? "(model)" : path;
}

double time_of(const Json& mode) {
  double sum = 0;
  for (const auto& [phase, value] : mode.at("phases_ms").items()) sum += value.get<double>();
  return sum;
}

std::string lead(const Json& profile) {
  std::string text;
  for (const Json& mode : profile.at("modes")) {
    const double step = number_of(mode, "step_ms");
    const double traced = number_of(mode, "traced_step_ms");
    text += fmt::format("{}{} on {}: {} a step, {} traced; a module is known for {:.1f} % of the time.",
                        text.empty() ? "" : " ", text_of(mode, "mode"), text_of(mode, "device"), milliseconds(step),
                        milliseconds(traced), 100 * number_of(mode, "attributed"));
  }
  return escape(text);
}

std::string wait_item(const Json& mode, const Json& wait) {
  const std::string op = text_of(wait, "op");
  const std::string what =
      fmt::format("{}: {} waits {} a step, {} times, in {} ({}, {})", text_of(mode, "mode"),
                  op.empty() ? "the program" : op, milliseconds(number_of(wait, "ms")), wait.at("count").get<int64_t>(),
                  text_of(wait, "phase"), path_of(mode, wait.at("module")), text_of(wait, "line"));
  const std::string hint = text_of(wait, "hint");
  return "<li>" + escape(what) + (hint.empty() ? "" : "<br>" + escape("Try: " + hint)) + "</li>\n";
}

std::string waits(const Json& profile) {
  std::string items;
  for (const Json& mode : profile.at("modes")) {
    for (const Json& wait : mode.at("waits")) items += wait_item(mode, wait);
  }
  if (items.empty()) return "";
  return "<div class=\"warnings\" role=\"note\"><h2>The host waits</h2>\n<ul>" + items + "</ul></div>";
}

/// A figure of bars for each mode; nothing for one without any.
template <class BarsOf>
std::string panels(const Json& profile, const std::string& what, BarsOf bars_of) {
  std::string all;
  for (const Json& mode : profile.at("modes")) {
    const std::vector<Bar> bars = bars_of(mode);
    if (bars.empty()) continue;
    const std::string name = text_of(mode, "mode");
    all += "<figure><figcaption><b>" + escape(name) + "</b><span>" + escape(text_of(mode, "device")) +
           "</span></figcaption>" + bar_chart(what + ", " + name, bars) + "</figure>\n";
  }
  return all;
}

/// Bars of sums, the largest first, at most `most`.
std::vector<Bar> bars_of(const std::map<std::string, double>& sums, size_t most, std::string (*show)(double)) {
  std::vector<std::pair<std::string, double>> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, double>::second);
  if (sorted.size() > most) sorted.resize(most);
  std::vector<Bar> bars;
  for (const auto& [name, value] : sorted) {
    if (value <= 0) break;
    bars.push_back({name, "hue0 shade0", value / sorted.front().second, show(value)});
  }
  return bars;
}

std::vector<Bar> phase_bars(const Json& mode) {
  std::map<std::string, double> sums;
  for (const auto& [phase, value] : mode.at("phases_ms").items()) sums[phase] = value.get<double>();
  return bars_of(sums, sums.size(), milliseconds);
}

std::vector<Bar> line_bars(const Json& mode) {
  std::map<std::string, double> sums;
  for (const Json& sum : mode.at("sums")) {
    const std::string line = text_of(sum, "line");
    sums[line.empty() ? "without a line" : line] += number_of(sum, "ms");
  }
  return bars_of(sums, most_lines, milliseconds);
}

std::vector<Bar> memory_bars(const Json& mode) {
  std::map<std::string, double> sums;
  for (const Json& owner : mode.at("memory").at("owners")) sums[text_of(owner, "kind")] += number_of(owner, "bytes");
  return bars_of(sums, sums.size(), show_bytes);
}

std::string head_of(const std::vector<std::string>& columns) {
  std::string head;
  for (const std::string& column : columns) head += "<th scope=\"col\">" + column + "</th>";
  return "<thead><tr>" + head + "</tr></thead>\n";
}

std::string group_row(const Json& mode, size_t columns) {
  return fmt::format("<tbody><tr><th scope=\"rowgroup\" colspan=\"{}\"><span>{}</span></th></tr>\n", columns,
                     escape(text_of(mode, "mode")));
}

std::string module_row(const Json& line, const std::string& program, double all) {
  double total = 0;
  std::string cells;
  for (const char* column : time_columns) {
    const double value = number_of(line, column);
    total += value;
    cells += value > 0 ? "<td>" + short_number(value) + "</td>" : "<td>–</td>";
  }
  if (total < least_share * all) return "";
  const auto repeats = line.at("repeats").get<int64_t>();
  std::string label = text_of(line, "path").empty() ? program : text_of(line, "name");
  if (repeats > 1) label += fmt::format(" ×{}", repeats);
  return fmt::format(
      "<tr><th scope=\"row\" style=\"padding-left:{}px\">{} <span>{}</span></th>{}<td>{:.1f} "
      "%</td><td>{}</td><td>{}</td></tr>\n",
      24 + 16 * line.at("depth").get<int64_t>(), escape(label), escape(text_of(line, "kind")), cells,
      all > 0 ? 100 * total / all : 0, line.at("operators").get<int64_t>(), line.at("launches").get<int64_t>());
}

std::string modules(const Json& profile) {
  std::string body;
  for (const Json& mode : profile.at("modes")) {
    body += group_row(mode, 8);
    for (const Json& line : mode.at("tree")) body += module_row(line, text_of(profile, "name"), time_of(mode));
    body += "</tbody>\n";
  }
  return scrolling("modules", "<table class=\"modules\">" +
                                  head_of({"module", "forward ms", "backward ms", "optimizer ms", "compiled ms",
                                           "share", "operators", "launches"}) +
                                  body + "</table>");
}

std::string operator_row(const Json& mode, const Json& sum) {
  const std::string autograd = text_of(sum, "autograd");
  const Json& owners = sum.at("modules");
  std::string module = owners.empty() ? "–" : path_of(mode, owners.front());
  if (owners.size() > 1) module += fmt::format(" and {} more", owners.size() - 1);
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.4g}</td><td>{}</td><td>{}</td></tr>\n",
                     escape(text_of(sum, "op") + (autograd.empty() ? "" : " of " + autograd)),
                     escape(text_of(sum, "phase")), short_number(number_of(sum, "ms")), number_of(sum, "calls"),
                     escape(text_of(sum, "line")), escape(module));
}

std::string operators(const Json& profile) {
  std::string body;
  for (const Json& mode : profile.at("modes")) {
    body += group_row(mode, 6);
    const Json& sums = mode.at("sums");
    for (size_t i = 0; i < std::min(sums.size(), most_operators); ++i) body += operator_row(mode, sums[i]);
    body += "</tbody>\n";
  }
  return scrolling("operators", "<table>" + head_of({"operator", "phase", "ms a step", "calls", "line", "module"}) +
                                    body + "</table>");
}

std::string notes(const Json& profile) {
  std::string items;
  for (const Json& mode : profile.at("modes")) {
    for (const Json& note : mode.at("notes")) {
      items += "<li>" + escape(text_of(mode, "mode") + ": " + note.get<std::string>()) + "</li>\n";
    }
  }
  return items.empty() ? "" : "<section id=\"notes\"><h2>What could not be seen</h2><ul>" + items + "</ul></section>";
}

}  // namespace

std::string profile_page(const Json& profile) {
  return fill(profile_page_template(), {{"style", std::string(page_style())},
                                        {"name", escape(text_of(profile, "name"))},
                                        {"lead", lead(profile)},
                                        {"waits", waits(profile)},
                                        {"phases", panels(profile, "Milliseconds a step by phase", phase_bars)},
                                        {"lines", panels(profile, "Milliseconds a step by line", line_bars)},
                                        {"memory", panels(profile, "Bytes at the peak", memory_bars)},
                                        {"modules", modules(profile)},
                                        {"operators", operators(profile)},
                                        {"notes", notes(profile)}});
}

}  // namespace sinter::bench
