#include <fmt/format.h>

#include "bench/compare/join.h"
#include "bench/compare/kernel_classes.h"

namespace sinter::bench {
namespace {

std::string number(std::optional<double> value, double scale = 1) {
  return value ? fmt::format("{:.4g}", *value * scale) : "-";
}

std::string mebibytes(std::optional<double> bytes) { return bytes ? fmt::format("{:.1f}", *bytes / (1 << 20)) : "-"; }

/// What a first call costs beyond eager's; below zero where it costs less.
std::optional<double> beyond_eager(const Row& row, std::optional<double> first_call) {
  if (!first_call || !row.eager_cold_s) return std::nullopt;
  return *first_call - *row.eager_cold_s;
}

std::string contender_line(const Contender& contender, const Case& one) {
  const Row& row = contender.row;
  return fmt::format(
      "  {:<34} {:>9.4g} {:>8.4g}{} {:>7.2f}x {:>10} {:>8} {:>8} {:>9} {:>9} {:>10} {:>9} {:>9} {:>9} {:>7} {:>9}\n",
      contender.name, row.steady_ms, row.eager_ms, eager_differs(one, row) ? "!" : " ", contender.speedup,
      number(row.latency_ms), number(row.cold_s), number(row.warm_s), number(beyond_eager(row, row.cold_s)),
      number(beyond_eager(row, row.warm_s)),
      row.break_even_calls ? fmt::format("{:.0f}", *row.break_even_calls) : "never", mebibytes(row.device_bytes),
      mebibytes(row.allocated_bytes), mebibytes(row.reserved_bytes), number(row.kernels), number(row.max_error));
}

/// What eager's own processes took, those of Sinter's run and of each peer's.
std::string eager_line(const std::string& name, const Row& row, double eager_ms) {
  return fmt::format(
      "  {:<34} {:>9.4g} {:>8} {:>9} {:>10} {:>8} {:>8} {:>9} {:>9} {:>10} {:>9} {:>9} {:>9} {:>7} {:>9}\n", name,
      eager_ms, "", "", number(row.eager_latency_ms), number(row.eager_cold_s), "", "", "", "",
      mebibytes(row.eager_device_bytes), mebibytes(row.eager_allocated_bytes), mebibytes(row.eager_reserved_bytes),
      number(row.eager_kernels), number(row.eager_max_error));
}

/// One line of the table of training steps.
struct StepLine {
  std::string name;
  double step_ms = 0;
  double speedup = 1;
  std::optional<double> device_ms, host_ms, allocated_bytes, eager_allocated_bytes, cold_s, loss_difference;
};

std::string step_line(const StepLine& line) {
  const auto share = line.allocated_bytes && line.eager_allocated_bytes.value_or(0) > 0
                         ? fmt::format("{:.2f}x", *line.allocated_bytes / *line.eager_allocated_bytes)
                         : "-";
  return fmt::format("  {:<34} {:>9.4g} {:>8.2f}x {:>9} {:>9} {:>9} {:>9} {:>8} {:>12}\n", line.name, line.step_ms,
                     line.speedup, number(line.device_ms), number(line.host_ms), mebibytes(line.allocated_bytes), share,
                     number(line.cold_s), line.loss_difference ? fmt::format("{:.2g}", *line.loss_difference) : "-");
}

StepLine eager_step(const std::string& name, const Row& row, double eager_ms, double speedup) {
  return {.name = name,
          .step_ms = eager_ms,
          .speedup = speedup,
          .device_ms = row.eager_device_ms,
          .host_ms = {},
          .allocated_bytes = row.eager_allocated_bytes,
          .eager_allocated_bytes = {},
          .cold_s = row.eager_cold_s,
          .loss_difference = {}};
}

StepLine step_of(const Contender& contender) {
  const Row& row = contender.row;
  return {.name = contender.name,
          .step_ms = row.steady_ms,
          .speedup = contender.speedup,
          .device_ms = row.device_ms,
          .host_ms = row.unsynchronised_ms,
          .allocated_bytes = row.allocated_bytes,
          .eager_allocated_bytes = row.eager_allocated_bytes,
          .cold_s = row.cold_s,
          .loss_difference = row.loss_difference};
}

/// What training steps are compared by: time of the step, of the device in it and of the host, memory, losses. Memory
/// and losses are beside the eager of the same contender.
std::string steps_of(const Case& one) {
  std::string text =
      fmt::format("\n  {:<34} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>12}\n", "a training step", "step ms",
                  "speed-up", "device ms", "host ms", "alloc. M", "of eager", "cold s", "losses differ");
  std::string shown = "\n";  // no peer's name
  for (const Contender& contender : one.contenders) {
    const Row& row = contender.row;
    if (row.peer != shown) {
      shown = row.peer;
      text += step_line(shown.empty()
                            ? eager_step("eager (LibTorch)", row, one.eager_ms, 1)
                            : eager_step("eager beside " + shown, row, row.eager_ms, one.eager_ms / row.eager_ms));
    }
    text += step_line(step_of(contender));
  }
  return text;
}

/// Kernel tables of those contenders that have one, eager's before Sinter's.
std::string kernels_of(const Case& one) {
  std::vector<KernelList> lists;
  const auto add = [&](const std::string& name, const Contender& contender, const char* field) {
    const auto found = contender.row.source.find(field);
    if (found != contender.row.source.end() && found->is_array()) lists.push_back({name, *found});
  };
  for (const Contender& contender : one.contenders) {
    if (lists.empty()) add("eager", contender, "eager_kernel_table");
    add(contender.name, contender, "kernel_table");
  }
  return lists.empty() ? "" : "\n" + kernels_side_by_side(lists);
}

std::string case_block(const Case& one) {
  std::string text = fmt::format(
      "\n{} {} {}: eager {:.4g} ms\n  {:<34} {:>9} {:>8}  {:>8} {:>10} {:>8} {:>8} {:>9} {:>9} {:>10} {:>9} {:>9} "
      "{:>9} {:>7} {:>9}\n",
      one.model, one.shape, one.device, one.eager_ms, "", "steady ms", "eager ms", "speed-up", "latency ms", "cold s",
      "warm s", "cold-eag.", "warm-eag.", "break-even", "device M", "alloc. M", "reserv. M", "kernels", "max error");
  std::string shown = "\n";  // no peer's name
  for (const Contender& contender : one.contenders) {
    if (contender.row.peer != shown) {
      shown = contender.row.peer;
      text += shown.empty() ? eager_line("eager (LibTorch)", contender.row, one.eager_ms)
                            : eager_line("eager beside " + shown, contender.row, contender.row.eager_ms);
    }
    text += contender_line(contender, one);
  }
  for (const Contender& contender : one.contenders) {
    if (!eager_differs(one, contender.row)) continue;
    text += fmt::format("  ! eager took {:.4g} ms beside {}, {:+.0f} % of the {:.4g} ms that speed-ups are against\n",
                        contender.row.eager_ms, contender.name, 100 * (contender.row.eager_ms / one.eager_ms - 1),
                        one.eager_ms);
  }
  const bool trains = !one.contenders.empty() && one.contenders.front().row.trains;
  return text + (trains ? steps_of(one) : "") + kernels_of(one);
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
      row["break_even_calls"] = contender.row.break_even_calls ? Json(*contender.row.break_even_calls) : Json(nullptr);
      rows.push_back(std::move(row));
    }
  }
  for (const Contender& contender : comparison.unmatched) unmatched.push_back(source(contender));
  return {{"sinter", "0.1.0"},      {"environment", comparison.results.front().environment},
          {"peers", peers},         {"rows", rows},
          {"unmatched", unmatched}, {"warnings", comparison.warnings}};
}

}  // namespace sinter::bench
