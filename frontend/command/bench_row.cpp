#include "frontend/command/bench_row.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/compare/costs.h"

namespace sinter::command {
namespace {

using Json = nlohmann::json;

double median(const Json& row, const char* what) { return row.at(what).at("median").get<double>(); }

/// The middle one of several, of an even number the mean of the two in the middle; null where there is none.
Json median(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

int64_t kernel_count(const Json& trace, const Json& launches) {
  return trace.is_array() ? static_cast<int64_t>(trace.size()) : launches.get<int64_t>();
}

/// What belongs to a row only where it says something.
void add_options(const TargetOptions& target, Json& row) {
  if (target.freeze || (is_file(target.model) && !target.train)) row["freeze"] = true;
  if (target.train) row["train"] = target.optimizer.empty() ? "sgd" : target.optimizer;
  if (!target.amp.empty()) row["amp"] = target.amp;
  if (target.numerics != "fast") row["numerics"] = target.numerics;
  if (!target.settings.empty()) row["settings"] = target.settings;
}

std::string seconds(const Json& value) { return value.is_null() ? "-" : fmt::format("{:.3f}", value.get<double>()); }

std::string mebibytes(const Json& value) {
  return value.is_null() ? "-" : fmt::format("{:.1f}", value.get<double>() / (1 << 20));
}

constexpr const char* columns =
    "{:<12} {:<22} {:<8} {:<16} {:>8} {:>10} {:>9} {:>11} {:>12} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>8} {:>6} "
    "{:>11} {:>10}\n";

}  // namespace

Json make_row(const TargetOptions& target, const std::string& mode, const Json& compiled, const Json& eager,
              const Starts& starts) {
  const double eager_ms = median(compiled, "eager");
  const double steady_ms = median(compiled, "steady");
  const Json& accuracy = compiled.at("accuracy");
  Json row = {{"model", target.model},
              {"device", compiled.at("device")},
              {"dtype", compiled.at("dtype")},
              {"shape", compiled.at("shape")},
              {"mode", mode},
              {"eager_ms", eager_ms},
              {"steady_ms", steady_ms},
              {"latency_ms", median(compiled, "latency")},
              {"eager_latency_ms", median(compiled, "eager_latency")},
              {"unsynchronised_ms_wrong", median(compiled, "unsynchronised")},
              {"speedup", eager_ms / steady_ms},
              {"cold_s", median(starts.cold_s)},
              {"warm_s", median(starts.warm_s)},
              {"eager_cold_s", median(starts.eager_cold_s)},
              {"starts", {{"cold_s", starts.cold_s}, {"warm_s", starts.warm_s}, {"eager_cold_s", starts.eager_cold_s}}},
              {"first_calls_s", compiled.at("first_calls_s")},
              {"eager_first_calls_s", eager.at("first_calls_s")},
              {"phases", compiled.at("phases")},
              {"kernels", kernel_count(compiled.at("kernel_trace"), compiled.at("launches"))},
              {"eager_kernels", kernel_count(compiled.at("eager_kernel_trace"), compiled.at("eager_launches"))},
              {"max_error", accuracy.at("max_error")},
              {"rms_error", accuracy.at("rms_error")},
              {"eager_max_error", accuracy.at("eager_max_error")},
              {"eager_rms_error", accuracy.at("eager_rms_error")},
              {"breaks", compiled.at("breaks")},
              {"timing", {{"eager", compiled.at("eager")}, {"steady", compiled.at("steady")}}},
              {"kernel_trace", compiled.at("kernel_trace")},
              {"report", compiled.at("report")}};
  for (const char* what : {"device_bytes", "allocated_bytes", "reserved_bytes"}) {
    row[what] = compiled.at(what);
    row[std::string("eager_") + what] = eager.at(what);
  }
  if (compiled.contains("losses")) row["losses"] = compiled.at("losses");
  add_options(target, row);
  const auto parsed = bench::parse_results({{"rows", {row}}}, "this run").front().rows.front();
  const auto calls = bench::break_even(parsed);
  row["break_even_calls"] = calls ? Json(*calls) : Json(nullptr);
  return row;
}

std::string row_header() {
  return fmt::format(fmt::runtime(columns), "model", "input", "device", "mode", "eager ms", "steady ms", "speed-up",
                     "latency ms", "unsynced ms", "cold s", "warm s", "eager s", "device M", "eager", "alloc. M",
                     "eager", "kernels", "eager", "break-even", "max error") +
         fmt::format("{:>105}\n", "(wrong!)");
}

std::string row_line(const Json& row) {
  const auto text = [&](const char* key) { return row.at(key).get<std::string>(); };
  const auto four = [&](const char* key) { return fmt::format("{:.4g}", row.at(key).get<double>()); };
  const std::string pays =
      row.at("break_even_calls").is_null() ? "never" : fmt::format("{:.0f}", row.at("break_even_calls").get<double>());
  return fmt::format(fmt::runtime(columns), text("model"), text("shape"), text("device"), text("mode"),
                     four("eager_ms"), four("steady_ms"), fmt::format("{:.2f}x", row.at("speedup").get<double>()),
                     four("latency_ms"), four("unsynchronised_ms_wrong"), seconds(row.at("cold_s")),
                     seconds(row.at("warm_s")), seconds(row.at("eager_cold_s")), mebibytes(row.at("device_bytes")),
                     mebibytes(row.at("eager_device_bytes")), mebibytes(row.at("allocated_bytes")),
                     mebibytes(row.at("eager_allocated_bytes")), row.at("kernels").dump(),
                     row.at("eager_kernels").dump(), pays, fmt::format("{:.3g}", row.at("max_error").get<double>()));
}

std::string losses_line(const Json& row) {
  if (!row.contains("losses")) return "";
  const Json& losses = row.at("losses");
  const auto shown = [&](const char* key) {
    return losses.at(key).is_null() ? "not finite" : fmt::format("{:.4g}", losses.at(key).get<double>());
  };
  return fmt::format("  losses of {} steps: {} to {}, eager to {}; largest difference {} of eager's\n",
                     losses.at("steps").get<int64_t>(), shown("first"), shown("last"), shown("eager_last"),
                     shown("largest_difference"));
}

}  // namespace sinter::command
