#include "bench/compare/compile_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "bench/compare/bar_chart.h"
#include "bench/compare/compile_costs.h"
#include "bench/compare/compile_trace.h"
#include "bench/compare/html.h"
#include "bench/compare/svg.h"
#include "compiler/support/compile_phases.h"

namespace sinter::bench {
namespace {

using Json = nlohmann::json;
using NamedSums = std::map<std::string, double>;

constexpr size_t most_functions = 40;  ///< rows of a process
constexpr size_t most_kernels = 30, most_entries = 30;
constexpr size_t most_passes = 10;   ///< bars
constexpr size_t most_letters = 36;  ///< of a name in a table

std::string text_in(const Json& from, const char* key) { return from.at(key).get<std::string>(); }
double seconds_in(const Json& from, const char* key) { return from.at(key).get<double>(); }

std::string four_places(double seconds) { return fmt::format("{:.4f}", seconds); }

double total_of(const Json& process) {
  double sum = 0;
  for (const Json& row : process.at("rows")) sum += seconds_in(row, "seconds");
  return sum;
}

/// The column that a row of the file belongs to.
std::string column_of(const std::string& phase) {
  if (pass_of(phase)) return "passes";
  return is_compile_phase(phase) ? phase : "other";
}

std::vector<std::pair<std::string, double>> longest_first(const NamedSums& sums) {
  std::vector<std::pair<std::string, double>> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(sorted, std::greater(), &std::pair<std::string, double>::second);
  return sorted;
}

std::vector<Bar> longest_bars(const NamedSums& sums, size_t most) {
  std::vector<Bar> bars;
  const auto sorted = longest_first(sums);
  for (const auto& [name, value] : sorted) {
    if (value <= 0 || bars.size() == most) break;
    bars.push_back({name, "hue0 shade0", value / sorted.front().second, show_seconds(value)});
  }
  return bars;
}

NamedSums phase_sums(const Json& process) {
  NamedSums sums;
  for (const Json& row : process.at("rows")) sums[column_of(text_in(row, "phase"))] += seconds_in(row, "seconds");
  return sums;
}

NamedSums pass_sums(const Json& process) {
  NamedSums sums;
  for (const Json& row : process.at("rows")) {
    const std::string phase = text_in(row, "phase");
    if (const auto pass = pass_of(phase)) sums[std::string(*pass)] += seconds_in(row, "seconds");
  }
  return sums;
}

/// A figure of bars for each process; nothing for one without any.
std::string figures(const Json& processes, const std::string& what, NamedSums (*sums_of)(const Json&), size_t most) {
  std::string all;
  for (const Json& process : processes) {
    const auto bars = longest_bars(sums_of(process), most);
    if (bars.empty()) continue;
    const std::string name = name_of_process(process);
    all += "<figure><figcaption><b>" + escape(name) + "</b><span>" + show_seconds(total_of(process)) +
           " in all</span></figcaption>" + bar_chart(what + ", " + name, bars) + "</figure>\n";
  }
  return all;
}

std::string column_heads(const std::vector<std::string>& columns) {
  std::string head;
  for (const std::string& column : columns) head += "<th scope=\"col\">" + column + "</th>";
  return "<thead><tr>" + head + "</tr></thead>\n";
}

std::string process_row(const Json& process, size_t columns) {
  return fmt::format("<tbody><tr><th scope=\"rowgroup\" colspan=\"{}\"><span>{}</span></th></tr>\n", columns,
                     escape(name_of_process(process)));
}

std::string function_row(const std::string& name, const NamedSums& by_column) {
  std::string cells;
  double sum = 0;
  for (const std::string_view column : compile_phases) {
    const auto found = by_column.find(std::string(column));
    const double seconds = found == by_column.end() ? 0 : found->second;
    sum += seconds;
    cells += "<td>" + (seconds > 0 ? four_places(seconds) : std::string("–")) + "</td>";
  }
  return "<tr><th scope=\"row\">" + escape(shorten(name, most_letters)) + "</th><td>" + four_places(sum) + "</td>" +
         cells + "</tr>\n";
}

void add_sums(NamedSums& sums, const NamedSums& more) {
  for (const auto& [name, seconds] : more) sums[name] += seconds;
}

/// The functions of a process, the longest first, and their sum.
std::string function_rows(const Json& process, NamedSums& of_all) {
  std::map<std::string, NamedSums> functions;
  NamedSums totals, all, rest;
  for (const Json& row : process.at("rows")) {
    functions[text_in(row, "function")][column_of(text_in(row, "phase"))] += seconds_in(row, "seconds");
    totals[text_in(row, "function")] += seconds_in(row, "seconds");
  }
  std::string body;
  size_t shown = 0;
  for (const auto& [function, seconds] : longest_first(totals)) {
    add_sums(all, functions[function]);
    if (shown < most_functions) {
      body += function_row(function, functions[function]);
      ++shown;
    } else {
      add_sums(rest, functions[function]);
    }
  }
  if (totals.size() > shown) body += function_row(fmt::format("{} more functions", totals.size() - shown), rest);
  add_sums(of_all, all);
  return body + function_row("all functions", all);
}

std::string function_table(const Json& processes) {
  std::vector<std::string> columns{"function", "total"};
  columns.insert(columns.end(), compile_phases.begin(), compile_phases.end());
  std::string body;
  NamedSums all;
  for (const Json& process : processes) {
    body += process_row(process, columns.size()) + function_rows(process, all) + "</tbody>\n";
  }
  if (processes.size() > 1) {
    body += fmt::format("<tbody><tr><th scope=\"rowgroup\" colspan=\"{}\"><span>{} processes</span></th></tr>\n",
                        columns.size(), processes.size()) +
            function_row("all functions", all) + "</tbody>\n";
  }
  return scrolling("functions", "<table>" + column_heads(columns) + body + "</table>");
}

/// Events of a kind, the longest first.
std::vector<Json> longest_events(const Json& process, const char* kind, size_t most) {
  std::vector<Json> events;
  for (const Json& event : process.at("events")) {
    if (event.at("kind") == kind) events.push_back(event);
  }
  std::ranges::stable_sort(events, std::greater(), [](const Json& event) { return seconds_in(event, "duration"); });
  if (events.size() > most) events.resize(most);
  return events;
}

std::string milliseconds_of(const Json& event) { return fmt::format("{:.3f}", 1e3 * seconds_in(event, "duration")); }

std::string kernel_row(const Json& event) {
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{} / {}</td></tr>\n",
                     escape(shorten(text_in(event, "name"), most_letters)), escape(text_in(event, "origin")),
                     milliseconds_of(event), escape(shorten(text_in(event, "function"), most_letters)),
                     event.at("entry").get<int64_t>());
}

std::string kernel_counts(const Json& process) {
  int64_t built = 0, disk = 0, shared = 0;
  for (const Json& kernels : process.at("kernels")) {
    built += kernels.at("built").get<int64_t>();
    disk += kernels.at("disk").get<int64_t>();
    shared += kernels.at("shared").get<int64_t>();
  }
  return fmt::format("<tr><th scope=\"row\">all</th><td>{} built, {} disk, {} shared</td><td></td><td></td></tr>\n",
                     built, disk, shared);
}

std::string kernel_table(const Json& processes) {
  std::string body;
  for (const Json& process : processes) {
    body += process_row(process, 4) + kernel_counts(process);
    for (const Json& event : longest_events(process, "kernel", most_kernels)) body += kernel_row(event);
    body += "</tbody>\n";
  }
  return scrolling("kernels",
                   "<table>" + column_heads({"kernel", "origin", "ms", "function / entry"}) + body + "</table>");
}

std::string entry_table(const Json& processes) {
  std::string body;
  for (const Json& process : processes) {
    body += process_row(process, 3);
    for (const Json& event : longest_events(process, "entry", most_entries)) {
      body += fmt::format("<tr><th scope=\"row\">{} / {}</th><td>{}</td><td>{}</td></tr>\n",
                          escape(shorten(text_in(event, "function"), most_letters)), event.at("entry").get<int64_t>(),
                          milliseconds_of(event), escape(shorten(text_in(event, "name"), 80)));
    }
    body += "</tbody>\n";
  }
  return scrolling("entries", "<table>" + column_heads({"function / entry", "ms", "inputs"}) + body + "</table>");
}

std::string pays_row(const Json& process) {
  const Json& measured = process.at("measured");
  const double eager = seconds_in(measured, "eager_ms"), compiled = seconds_in(measured, "compiled_ms");
  const auto calls = pays_off_after(total_of(process), eager, compiled);
  return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.4g}</td><td>{:.4g}</td></tr>\n",
                     escape(shorten(text_in(measured, "name"), most_letters)),
                     calls ? fmt::format("{:.0f} calls", *calls) : "never", four_places(total_of(process)), eager,
                     compiled);
}

std::string pays_section(const Json& processes) {
  std::string body;
  for (const Json& process : processes) {
    if (process.contains("measured")) body += pays_row(process);
  }
  if (body.empty()) return "";
  return "<section id=\"pays\"><h2>When compiling has paid</h2>\n<p>Seconds of compiling over what one call gains. "
         "Each "
         "mode ran in a process of its own.</p>\n" +
         scrolling("pays", "<table>" +
                               column_heads({"mode", "has paid after", "compile s", "eager ms", "compiled ms"}) +
                               "<tbody>" + body + "</tbody></table>") +
         "</section>";
}

std::string lead_of(const Json& processes) {
  double all = 0;
  for (const Json& process : processes) all += total_of(process);
  return fmt::format("{} in {} {}, beyond what eager would have taken: the sum of all rows below.", show_seconds(all),
                     processes.size(), processes.size() == 1 ? "process" : "processes");
}

std::string notes_of(const Json& processes) {
  std::string items = "<li>Library plans: none are built.</li>\n<li>Tuning: none is done.</li>\n";
  for (const Json& process : processes) {
    const auto dropped = process.at("dropped").get<int64_t>();
    if (dropped == 0) continue;
    items +=
        "<li>" + escape(name_of_process(process)) +
        fmt::format(": the {} oldest events. Sums hold them; kernels, entries and the trace do not.</li>\n", dropped);
  }
  return items;
}

}  // namespace

std::string compile_page(const Json& processes) {
  return fill(compile_page_template(),
              {{"style", std::string(page_style())},
               {"lead", lead_of(processes)},
               {"pays", pays_section(processes)},
               {"phases", figures(processes, "Seconds by phase", phase_sums, compile_phases.size())},
               {"functions", function_table(processes)},
               {"passes", figures(processes, "Seconds by pass", pass_sums, most_passes)},
               {"kernels", kernel_table(processes)},
               {"entries", entry_table(processes)},
               {"notes", notes_of(processes)}});
}

}  // namespace sinter::bench
