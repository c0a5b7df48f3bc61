#include "bench/compare/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/compare/html.h"
#include "bench/compare/plots.h"

namespace sinter::bench {
namespace {

std::string shown(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

/// What a machine is called in the page's first line.
std::string machine(const Json& environment) {
  for (const char* key : {"gpu", "cpu", "device"}) {
    if (environment.contains(key) && environment.at(key) != "") return shown(environment.at(key));
  }
  return "a machine that the file does not name";
}

std::string lead(const Comparison& comparison) {
  const Json& environment = comparison.results.front().environment;
  std::set<std::string> contenders;
  for (const Case& one : comparison.cases) {
    for (const Contender& contender : one.contenders) contenders.insert(contender.name);
  }
  std::string text =
      fmt::format("{}, {} case{}, {} contender{}", machine(environment), comparison.cases.size(),
                  comparison.cases.size() == 1 ? "" : "s", contenders.size(), contenders.size() == 1 ? "" : "s");
  if (environment.contains("torch")) text += ", LibTorch " + shown(environment.at("torch"));
  return escape(text + ".");
}

std::string warnings(const Comparison& comparison) {
  if (comparison.warnings.empty()) return "";
  std::string items;
  for (const std::string& warning : comparison.warnings) items += "<li>" + escape(warning) + "</li>\n";
  return "<div class=\"warnings\" role=\"note\"><h2>Not measured alike</h2>\n<ul>" + items + "</ul></div>";
}

std::string legend(const Looks& looks, bool with_eager) {
  const auto entry = [](const std::string& classes, std::optional<size_t> shape, const std::string& name) {
    return swatch(classes, shape) + escape(name);
  };
  std::string items = with_eager ? "<li>" + entry("eager", std::nullopt, "eager") + "</li>" : "";
  for (const Looks::Named& named : looks.all())
    items += "<li>" + entry(named.look.classes, named.look.shape, named.name) + "</li>";
  return "<ul class=\"legend\">" + items + "</ul>";
}

std::string caption(const Case& one) {
  return fmt::format("<b>{}</b><span>{} · {}</span>", escape(one.model), escape(one.shape), escape(one.device));
}

/// A figure for each case that `draw` makes a picture of.
template <class Draw>
std::string panels(const Comparison& comparison, Draw draw) {
  std::string all;
  for (const Case& one : comparison.cases) {
    const std::string picture = draw(one);
    if (picture.empty()) continue;
    all += "<figure><figcaption>" + caption(one) + "</figcaption>" + picture + "</figure>\n";
  }
  return all;
}

std::string case_list(const Comparison& comparison) {
  std::string items;
  for (const Case& one : comparison.cases)
    items += fmt::format("<li>{} {} {}</li>", escape(one.model), escape(one.shape), escape(one.device));
  return items;
}

std::string number(std::optional<double> value) { return value ? fmt::format("{:.4g}", *value) : "–"; }
std::string count(std::optional<double> value) { return value ? fmt::format("{:.0f}", *value) : "–"; }
std::string bytes(std::optional<double> value) { return value ? show_bytes(*value) : "–"; }

std::optional<double> later_call(const Row& row, size_t i) {
  return i < row.later_calls_s.size() ? std::optional(row.later_calls_s[i]) : std::nullopt;
}

struct Column {
  const char* head;
  std::string (*cell)(const Contender&);
};

constexpr Column columns[] = {
    {"steady ms", [](const Contender& one) { return number(one.row.steady_ms); }},
    {"speed-up", [](const Contender& one) { return fmt::format("{:.2f}×", one.speedup); }},
    {"eager beside it, ms", [](const Contender& one) { return number(one.row.eager_ms); }},
    {"latency ms", [](const Contender& one) { return number(one.row.latency_ms); }},
    {"eager latency ms", [](const Contender& one) { return number(one.row.eager_latency_ms); }},
    {"cold s", [](const Contender& one) { return number(one.row.cold_s); }},
    {"warm s", [](const Contender& one) { return number(one.row.warm_s); }},
    {"eager cold s", [](const Contender& one) { return number(one.row.eager_cold_s); }},
    {"2nd call s", [](const Contender& one) { return number(later_call(one.row, 0)); }},
    {"3rd call s", [](const Contender& one) { return number(later_call(one.row, 1)); }},
    {"pays off",
     [](const Contender& one) { return one.row.break_even_calls ? count(one.row.break_even_calls) : "never"; }},
    {"device", [](const Contender& one) { return bytes(one.row.device_bytes); }},
    {"allocated", [](const Contender& one) { return bytes(one.row.allocated_bytes); }},
    {"reserved", [](const Contender& one) { return bytes(one.row.reserved_bytes); }},
    {"eager device", [](const Contender& one) { return bytes(one.row.eager_device_bytes); }},
    {"eager allocated", [](const Contender& one) { return bytes(one.row.eager_allocated_bytes); }},
    {"eager reserved", [](const Contender& one) { return bytes(one.row.eager_reserved_bytes); }},
    {"kernels", [](const Contender& one) { return count(one.row.kernels); }},
    {"eager kernels", [](const Contender& one) { return count(one.row.eager_kernels); }},
    {"max error", [](const Contender& one) { return number(one.row.max_error); }},
    {"eager max error", [](const Contender& one) { return number(one.row.eager_max_error); }},
};

std::string table_rows(const Case& one, size_t position) {
  std::string rows = fmt::format(
      "<tbody><tr><th scope=\"rowgroup\" colspan=\"{}\"><span>{}. {} {} {}, eager {:.4g} "
      "ms</span></th></tr>\n",
      1 + std::size(columns), position, escape(one.model), escape(one.shape), escape(one.device), one.eager_ms);
  for (const Contender& contender : one.contenders) {
    rows += "<tr><th scope=\"row\">" + escape(contender.name) + "</th>";
    for (const Column& column : columns) rows += "<td>" + column.cell(contender) + "</td>";
    rows += "</tr>\n";
  }
  return rows + "</tbody>\n";
}

std::string table(const Comparison& comparison) {
  std::string head = "<th scope=\"col\">contender</th>";
  for (const Column& column : columns) head += fmt::format("<th scope=\"col\">{}</th>", column.head);
  std::string body;
  for (size_t i = 0; i < comparison.cases.size(); ++i) body += table_rows(comparison.cases[i], i + 1);
  return scrolling("all numbers", "<table><thead><tr>" + head + "</tr></thead>\n" + body + "</table>");
}

std::string unmatched(const Comparison& comparison) {
  if (comparison.unmatched.empty()) return "";
  std::string rows;
  for (const Contender& one : comparison.unmatched) {
    rows +=
        fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{:.4g}</td><td>{}</td></tr>\n",
                    escape(one.row.model), escape(one.row.shape), escape(one.row.device), escape(one.name),
                    one.row.steady_ms, escape(comparison.results[one.results].file));
  }
  return "<section id=\"unmatched\"><h2>Not measured by Sinter</h2>\n<p>Rows of peers for which Sinter's run has no "
         "partner.</p>" +
         scrolling("rows without a partner",
                   "<table class=\"unmatched\"><thead><tr><th scope=\"col\">model</th><th scope=\"col\">input</th>"
                   "<th scope=\"col\">device</th><th scope=\"col\">contender</th><th scope=\"col\">steady ms</th>"
                   "<th scope=\"col\">file</th></tr></thead><tbody>" +
                       rows + "</tbody></table>") +
         "</section>";
}

std::string machines(const Comparison& comparison) {
  std::set<std::string> keys;
  std::string head = "<th scope=\"col\">setting</th>";
  std::string files = "<tr><th scope=\"row\">file</th>";
  for (const Results& one : comparison.results) {
    head += "<th scope=\"col\">" + escape(one.peer.empty() ? "sinter" : one.peer) + "</th>";
    files += "<td>" + escape(one.file) + "</td>";
    for (const auto& [key, value] : one.environment.items()) keys.insert(key);
  }
  std::string rows = files + "</tr>\n";
  for (const std::string& key : keys) {
    rows += "<tr><th scope=\"row\">" + escape(key) + "</th>";
    for (const Results& one : comparison.results)
      rows += "<td>" + (one.environment.contains(key) ? escape(shown(one.environment.at(key))) : "–") + "</td>";
    rows += "</tr>\n";
  }
  return scrolling("machines",
                   "<table class=\"machines\"><thead><tr>" + head + "</tr></thead><tbody>" + rows + "</tbody></table>");
}

}  // namespace

std::string to_html(const Comparison& comparison) {
  const Looks looks(comparison);
  const double largest = largest_speedup(comparison);
  const std::string memory = panels(comparison, [&](const Case& one) { return memory_bars(one, looks); });
  return fill(page_template(),
              {{"style", std::string(page_style())},
               {"lead", lead(comparison)},
               {"warnings", warnings(comparison)},
               {"legend", legend(looks, false)},
               {"legend_eager", legend(looks, true)},
               {"speedup", panels(comparison, [&](const Case& one) { return speedup_bars(one, looks, largest); })},
               {"gain", gain_scatter(comparison, looks, 1140, 480, "wide") +
                            gain_scatter(comparison, looks, 350, 380, "narrow")},
               {"cases", case_list(comparison)},
               {"curves", panels(comparison, [&](const Case& one) { return break_even_curves(one, looks); })},
               {"memory", memory.empty() ? "<p>No file says.</p>" : "<div class=\"panels\">" + memory + "</div>"},
               {"table", table(comparison)},
               {"unmatched", unmatched(comparison)},
               {"machines", machines(comparison)}});
}

}  // namespace sinter::bench
