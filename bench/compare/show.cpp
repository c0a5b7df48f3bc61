#include <fmt/format.h>

#include "bench/compare/join.h"

namespace sinter::bench {
namespace {

std::string number(std::optional<double> value, double scale = 1) {
  return value ? fmt::format("{:.4g}", *value * scale) : "-";
}

std::string contender_line(const Contender& contender) {
  const Row& row = contender.row;
  return fmt::format("  {:<32} {:>9.4g} {:>7.2f}x {:>10} {:>8.3f} {:>7} {:>10} {:>9} {:>9} {:>7} {:>9}\n",
                     contender.name, row.steady_ms, contender.speedup, number(row.latency_ms), row.cold_s,
                     number(row.warm_s), row.break_even_calls ? fmt::format("{:.0f}", *row.break_even_calls) : "never",
                     number(row.peak_bytes, 1.0 / (1 << 20)), number(row.eager_peak_bytes, 1.0 / (1 << 20)),
                     number(row.kernels), number(row.max_error));
}

std::string case_block(const Case& one) {
  std::string text = fmt::format(
      "\n{} {} {}: eager {:.4g} ms\n  {:<32} {:>9} {:>8} {:>10} {:>8} {:>7} {:>10} {:>9} {:>9} {:>7} {:>9}\n",
      one.model, one.shape, one.device, one.eager_ms, "", "steady ms", "speed-up", "latency ms", "cold s", "warm s",
      "break-even", "peak MiB", "eager MiB", "kernels", "max error");
  for (const Contender& contender : one.contenders) text += contender_line(contender);
  return text;
}

}  // namespace

std::string to_text(const Comparison& comparison) {
  std::string text;
  for (const Case& one : comparison.cases) text += case_block(one);
  if (!comparison.warnings.empty() || !comparison.unmatched.empty()) text += "\n";
  for (const std::string& warning : comparison.warnings) text += "warning: " + warning + "\n";
  for (const Contender& contender : comparison.unmatched) {
    const Row& row = contender.row;
    text += fmt::format("not measured by sinter: {} {} {}: {} {:.4g} ms ({})\n", row.model, row.shape, row.device,
                        contender.name, row.steady_ms, comparison.results[contender.results].file);
  }
  return text;
}

Json to_json(const Comparison& comparison) {
  Json rows = Json::array();
  Json unmatched = Json::array();
  Json peers = Json::array();
  for (const Results& results : comparison.results) {
    if (results.peer.empty()) continue;
    peers.push_back({{"peer", results.peer}, {"file", results.file}, {"environment", results.environment}});
  }
  const auto source = [](const Contender& contender) {
    Json row = contender.row.source;
    if (!contender.row.peer.empty()) row["peer"] = contender.row.peer;
    return row;
  };
  for (const Case& one : comparison.cases) {
    for (const Contender& contender : one.contenders) {
      Json row = source(contender);
      row["speedup"] = contender.speedup;
      rows.push_back(std::move(row));
    }
  }
  for (const Contender& contender : comparison.unmatched) unmatched.push_back(source(contender));
  return {{"sinter", "0.1.0"},      {"environment", comparison.results.front().environment},
          {"peers", peers},         {"rows", rows},
          {"unmatched", unmatched}, {"warnings", comparison.warnings}};
}

}  // namespace sinter::bench
