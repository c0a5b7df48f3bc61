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
constexpr size_t most_owners = 20;     ///< of a segment
constexpr size_t most_gains = 30;      ///< in the table of limits
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

/// "aten::mm of MmBackward0"
std::string called_by(const Json& row) {
  const std::string autograd = text_of(row, "autograd");
  return text_of(row, "op") + (autograd.empty() ? "" : " of " + autograd);
}

std::string slow_item(const Json& mode, const Json& slow) {
  const std::string what = fmt::format("{}: {} takes {} a step, {:.4g} times, {:.4g} launches, in {} ({}, {})",
                                       text_of(mode, "mode"), called_by(slow), milliseconds(number_of(slow, "ms")),
                                       number_of(slow, "count"), number_of(slow, "launches"), text_of(slow, "phase"),
                                       path_of(mode, slow.at("module")), text_of(slow, "line"));
  return "<li>" + escape(what) + "<br>" + escape("Try: " + text_of(slow, "hint")) + "</li>\n";
}

/// A list that stands above everything else, of the rows of `key` of all modes; nothing without any.
template <class ItemOf>
std::string warnings(const Json& profile, const char* key, const std::string& title, ItemOf item_of) {
  std::string items;
  for (const Json& mode : profile.at("modes")) {
    for (const Json& row : mode.at(key)) items += item_of(mode, row);
  }
  if (items.empty()) return "";
  return "<div class=\"warnings\" role=\"note\"><h2>" + title + "</h2>\n<ul>" + items + "</ul></div>";
}

std::string findings(const Json& profile) {
  return warnings(profile, "waits", "The host waits", wait_item) +
         warnings(profile, "slow", "Deterministic algorithms are slow", slow_item);
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

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// In the order in which people ask; nothing where no device was traced.
std::vector<Bar> share_bars(const Json& mode) {
  const Json& shares = mode.at("shares");
  if (shares.is_null()) return {};
  std::vector<Bar> bars;
  for (const auto& [key, name] : {std::pair{"busy", "device busy"}, std::pair{"launch", "bound by launches"},
                                  std::pair{"host", "bound by the host"}, std::pair{"wait", "host waits, device idle"},
                                  std::pair{"between", "between kernels"}}) {
    const double share = number_of(shares, key);
    bars.push_back({name, key == std::string("busy") ? "hue2 shade0" : "hue1 shade0", share, percent(share)});
  }
  return bars;
}

/// A section that is there only where there is something to show.
std::string section(const std::string& id, const std::string& title, const std::string& text,
                    const std::string& content) {
  if (content.empty()) return "";
  return "<section id=\"" + id + "\">\n<h2>" + title + "</h2>\n<p>" + text + "</p>\n" + content + "\n</section>";
}

std::string device_section(const Json& profile) {
  const std::string figures = panels(profile, "Shares of a step", share_bars);
  return section("device", "What the time of a step goes to",
                 "Shares of the traced steps. While the device is idle, what comes next says why: its launch call was "
                 "not over, the host had not come to it, or it was launched and the device had not begun.",
                 figures.empty() ? "" : "<div class=\"panels\">" + figures + "</div>");
}

std::string head_of(const std::vector<std::string>& columns) {
  std::string head;
  for (const std::string& column : columns) head += "<th scope=\"col\">" + column + "</th>";
  return "<thead><tr>" + head + "</tr></thead>\n";
}

std::string group_row(const std::string& title, size_t columns) {
  return fmt::format("<tbody><tr><th scope=\"rowgroup\" colspan=\"{}\"><span>{}</span></th></tr>\n", columns,
                     escape(title));
}

/// "–" for what is not known.
std::string bytes_cell(const Json& bytes) {
  const auto known = bytes.get<double>();
  return "<td>" + (known < 0 ? "–" : show_bytes(known)) + "</td>";
}

/// Peak and what the allocator keeps, one row for each mode.
std::string memory_table(const Json& profile) {
  std::string body;
  for (const Json& mode : profile.at("modes")) {
    const Json& memory = mode.at("memory");
    body += "<tr><th scope=\"row\">" + escape(text_of(mode, "mode")) + "</th>";
    for (const char* key : {"before", "held", "peak", "reserved"}) body += bytes_cell(memory.at(key));
    body += "</tr>\n";
  }
  return scrolling("memory of each mode", "<table>" +
                                              head_of({"mode", "parameters and gradients before a step",
                                                       "else held before it", "peak", "kept by the allocator"}) +
                                              "<tbody>" + body + "</tbody></table>");
}

std::string recomputed_table(const Json& profile) {
  std::string body;
  for (const Json& mode : profile.at("modes")) {
    const Json& recomputed = mode.at("memory").at("recomputed");
    if (recomputed.empty()) continue;
    body += group_row(text_of(mode, "mode"), 4);
    for (const Json& one : recomputed) {
      body += "<tr><th scope=\"row\">" + escape(text_of(one, "op")) + "</th>" + bytes_cell(one.at("bytes")) + "<td>" +
              short_number(number_of(one, "ms")) + "</td><td>" + fmt::format("{}", one.at("operators").get<int64_t>()) +
              "</td></tr>\n";
    }
    body += "</tbody>\n";
  }
  if (body.empty()) return "";
  return "<h3>Recomputing activations in the backward pass would save at most</h3>\n" +
         scrolling("recomputing",
                   "<table>" + head_of({"operator", "bytes", "ms a step", "operators"}) + body + "</table>");
}

std::string segment_rows(const Json& mode, const Json& segment) {
  std::string rows = group_row(fmt::format("{}: {}, arena {}", text_of(mode, "mode"), text_of(segment, "signature"),
                                           show_bytes(number_of(segment, "arena"))),
                               5);
  const Json& owners = segment.at("owners");
  for (size_t i = 0; i < std::min(owners.size(), most_owners); ++i) {
    const Json& owner = owners[i];
    rows += "<tr><th scope=\"row\">" + escape(path_of(mode, owner.at("module"))) + "</th>" +
            bytes_cell(owner.at("bytes")) + "<td>" + escape(text_of(owner, "kind")) + "</td><td>" +
            escape(text_of(owner, "phase")) + "</td><td>" + escape(text_of(owner, "line")) + "</td></tr>\n";
  }
  return rows + "</tbody>\n";
}

std::string segments_table(const Json& profile) {
  std::string body;
  for (const Json& mode : profile.at("modes")) {
    for (const Json& segment : mode.at("segments")) body += segment_rows(mode, segment);
  }
  if (body.empty()) return "";
  return "<h3>What compiled segments hold at their fullest moment</h3>\n" +
         scrolling("segments", "<table>" + head_of({"module", "bytes", "what", "phase", "line"}) + body + "</table>");
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
  const double saved = number_of(line, "saved");
  std::string label = text_of(line, "path").empty() ? program : text_of(line, "name");
  if (repeats > 1) label += fmt::format(" ×{}", repeats);
  return fmt::format(
      "<tr><th scope=\"row\" style=\"padding-left:{}px\">{} <span>{}</span></th>{}<td>{:.1f} "
      "%</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
      24 + 16 * line.at("depth").get<int64_t>(), escape(label), escape(text_of(line, "kind")), cells,
      all > 0 ? 100 * total / all : 0, line.at("operators").get<int64_t>(), line.at("launches").get<int64_t>(),
      saved > 0 ? show_bytes(saved) : "–");
}

std::string modules(const Json& profile) {
  std::string body;
  for (const Json& mode : profile.at("modes")) {
    body += group_row(text_of(mode, "mode"), 9);
    for (const Json& line : mode.at("tree")) body += module_row(line, text_of(profile, "name"), time_of(mode));
    body += "</tbody>\n";
  }
  return scrolling("modules", "<table class=\"modules\">" +
                                  head_of({"module", "forward ms", "backward ms", "optimizer ms", "compiled ms",
                                           "share", "operators", "launches", "saved"}) +
                                  body + "</table>");
}

std::string operator_row(const Json& mode, const Json& sum) {
  const Json& owners = sum.at("modules");
  std::string module = owners.empty() ? "–" : path_of(mode, owners.front());
  if (owners.size() > 1) module += fmt::format(" and {} more", owners.size() - 1);
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.4g}</td><td>{}</td><td>{}</td></tr>\n",
                     escape(called_by(sum)), escape(text_of(sum, "phase")), short_number(number_of(sum, "ms")),
                     number_of(sum, "calls"), escape(text_of(sum, "line")), escape(module));
}

/// Sums whose limit is known, those that could win most first.
std::vector<const Json*> gains_of(const Json& mode) {
  std::vector<const Json*> gains;
  for (const Json& sum : mode.at("sums")) {
    if (!sum.at("gain_ms").is_null()) gains.push_back(&sum);
  }
  std::ranges::stable_sort(gains, std::greater(), [](const Json* sum) { return number_of(*sum, "gain_ms"); });
  if (gains.size() > most_gains) gains.resize(most_gains);
  return gains;
}

double peak_of(const Json& mode, const std::string& dtype) {
  for (const Json& peak : mode.at("limits").at("peaks")) {
    if (text_of(peak, "dtype") == dtype) return number_of(peak, "flops_per_s");
  }
  return 0;
}

/// A rate a second in that unit, and its share of the limit.
std::string rate_cells(double amount, double ms, double limit, double unit) {
  if (amount <= 0 || ms <= 0 || limit <= 0) return "<td>–</td><td>–</td>";
  const double rate = amount / (ms / 1e3);
  return "<td>" + short_number(rate / unit) + "</td><td>" + fmt::format("{:.0f} %", 100 * rate / limit) + "</td>";
}

std::string gain_row(const Json& mode, const Json& sum) {
  const double ms = number_of(sum, "ms");
  return "<tr><th scope=\"row\">" + escape(called_by(sum)) + "</th><td>" + short_number(number_of(sum, "gain_ms")) +
         "</td><td>" + short_number(ms) + "</td><td>" + show_bytes(number_of(sum, "bytes")) + "</td>" +
         rate_cells(number_of(sum, "bytes"), ms, number_of(mode.at("limits"), "bytes_per_s"), 1e9) +
         rate_cells(number_of(sum, "flops"), ms, peak_of(mode, text_of(sum, "dtype")), 1e12) + "<td>" +
         escape(text_of(sum, "phase")) + "</td><td>" + escape(text_of(sum, "line")) + "</td></tr>\n";
}

std::string limits_table(const Json& profile) {
  constexpr size_t columns = 10;
  std::string body;
  for (const Json& mode : profile.at("modes")) {
    const auto gains = gains_of(mode);
    if (gains.empty()) continue;
    body += group_row(text_of(mode, "mode"), columns);
    for (const Json* sum : gains) body += gain_row(mode, *sum);
    body += "</tbody>\n";
  }
  if (body.empty()) return "";
  return scrolling("limits", "<table>" +
                                 head_of({"operator", "could be won, ms", "ms a step", "bytes", "GB/s", "of bandwidth",
                                          "TFLOP/s", "of peak", "phase", "line"}) +
                                 body + "</table>");
}

std::string limits_section(const Json& profile) {
  return section(
      "limits", "Kernels against the limits of the device",
      "Those that could win most first: time beyond what the device needs to move the bytes that they must "
      "read and write, and for the operations of matrix products, convolutions and attention. What the "
      "device can do was measured with a copy and with products of large matrices; data in caches is faster.",
      limits_table(profile));
}

std::string operators(const Json& profile) {
  std::string body;
  for (const Json& mode : profile.at("modes")) {
    body += group_row(text_of(mode, "mode"), 6);
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
                                        {"findings", findings(profile)},
                                        {"device", device_section(profile)},
                                        {"phases", panels(profile, "Milliseconds a step by phase", phase_bars)},
                                        {"lines", panels(profile, "Milliseconds a step by line", line_bars)},
                                        {"memory", panels(profile, "Bytes at the peak", memory_bars)},
                                        {"memory-modes", memory_table(profile)},
                                        {"memory-more", segments_table(profile) + recomputed_table(profile)},
                                        {"modules", modules(profile)},
                                        {"operators", operators(profile)},
                                        {"limits", limits_section(profile)},
                                        {"notes", notes(profile)}});
}

}  // namespace sinter::bench
