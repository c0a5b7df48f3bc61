#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/compare/join.h"
#include "bench/compare/page.h"
#include "bench/measure/environment.h"
#include "bench/models/model.h"
#include "compiler/support/errors.h"
#include "frontend/command/bench_kernels.h"
#include "frontend/command/commands.h"
#include "frontend/command/process.h"

namespace sinter::command {
namespace {

using Json = nlohmann::json;

TargetOptions with(TargetOptions base, const std::string& model, const std::string& input, const std::string& dtype) {
  base.model = model;
  base.inputs = {input};
  base.dtype = dtype;
  return base;
}

/// What `sinter bench` measures when no model is named.
std::vector<TargetOptions> standard_set(const TargetOptions& base) {
  if (parse_device(base.device).is_cpu()) {
    return {with(base, "gelu", "f32[4096,4096]", ""), with(base, "gelu", "f32[4096]", ""),
            with(base, "gelu_mlp", "f32[128,768]", ""), with(base, "resnet50", "f32[1,3,224,224]", "")};
  }
  return {with(base, "gelu", "f32[8192,8192]", ""),
          with(base, "gelu", "f16[8192,8192]", ""),
          with(base, "gelu", "f32[4096]", ""),
          with(base, "gelu_mlp", "f16[128,768]", "f16"),
          with(base, "resnet50", "f16[1,3,224,224]", "f16"),
          with(base, "resnet50", "f32[1,3,224,224]", ""),
          with(base, "resnet50", "f16[128,3,224,224]", "f16"),
          with(base, "resnet50", "f32[128,3,224,224]", "")};
}

std::vector<std::string> child_arguments(const TargetOptions& target, const std::string& mode, const std::string& kind,
                                         double budget, const std::string& file) {
  std::vector<std::string> arguments{"bench-child", target.model,   "--mode",   mode,
                                     "--kind",      kind,           "--budget", fmt::format("{}", budget),
                                     "--out",       file,           "--seed",   fmt::format("{}", target.seed),
                                     "--numerics",  target.numerics};
  for (const std::string& input : target.inputs) arguments.insert(arguments.end(), {"--input", input});
  for (const std::string& setting : target.settings) arguments.insert(arguments.end(), {"--set", setting});
  if (!target.inputs_file.empty()) arguments.insert(arguments.end(), {"--inputs", target.inputs_file});
  if (!target.weights.empty()) arguments.insert(arguments.end(), {"--weights", target.weights});
  if (!target.device.empty()) arguments.insert(arguments.end(), {"--device", target.device});
  if (!target.dtype.empty()) arguments.insert(arguments.end(), {"--dtype", target.dtype});
  if (target.batch > 0) arguments.insert(arguments.end(), {"--batch", fmt::format("{}", target.batch)});
  if (target.freeze) arguments.emplace_back("--freeze");
  if (target.strict) arguments.emplace_back("--strict");
  if (target.fullgraph) arguments.emplace_back("--fullgraph");
  return arguments;
}

/// Runs one measurement in a fresh process that keeps its kernels in `cache` (a folder, or "off"); nothing when it
/// failed. Throws AlreadySaid when it was asked for something that cannot be, which the child has explained.
std::optional<Json> measure(const TargetOptions& target, const std::string& mode, const std::string& kind,
                            double budget, const std::string& cache) {
  const TemporaryFile file;
  const int code = run_self(child_arguments(target, mode, kind, budget, file.path()), {"SINTER_CACHE=" + cache});
  if (code == 2) throw AlreadySaid();
  if (code != 0) return std::nullopt;
  return Json::parse(file.read());
}

/// The compiled function, from an empty kernel cache and then, for its first call (and where asked for, its kernels),
/// in other processes with what the first one left in it.
std::optional<Json> measure_compiled(const TargetOptions& target, const std::string& mode,
                                     const BenchOptions& options) {
  const TemporaryFolder cache;
  auto row = measure(target, mode, "compiled", options.budget, cache.path());
  if (!row) return row;
  const auto warm = measure(target, mode, "warm", options.budget, cache.path());
  (*row)["warm_s"] = warm ? warm->at("warm_s") : Json(nullptr);
  if (options.kernels && row->at("device").get<std::string>().starts_with("cuda")) {
    const auto kernels = measure(target, mode, "kernels", options.budget, cache.path());
    if (kernels) (*row)["traced"] = kernels->at("traced");
  }
  return row;
}

double median(const Json& row, const char* what) { return row.at(what).at("median").get<double>(); }

int64_t kernel_count(const Json& trace, const Json& launches) {
  return trace.is_array() ? static_cast<int64_t>(trace.size()) : launches.get<int64_t>();
}

/// One line of the table, from what the two processes measured.
Json make_row(const TargetOptions& target, const std::string& mode, const Json& compiled, const Json& eager) {
  const double eager_ms = median(compiled, "eager");
  const double steady_ms = median(compiled, "steady");
  const double eager_cold = eager.at("eager_cold_s");
  const double cost = (compiled.at("cold_s").get<double>() - eager_cold) +
                      (compiled.at("verify_s").get<double>() - eager_ms / 1e3) +
                      (compiled.at("first_replay_s").get<double>() - steady_ms / 1e3);
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
              {"cold_s", compiled.at("cold_s")},
              {"warm_s", compiled.at("warm_s")},
              {"verify_s", compiled.at("verify_s")},
              {"first_replay_s", compiled.at("first_replay_s")},
              {"eager_cold_s", eager_cold},
              {"phases", compiled.at("phases")},
              {"peak_bytes", compiled.at("peak_bytes")},
              {"eager_peak_bytes", compiled.at("eager_peak_bytes")},
              {"kernels", kernel_count(compiled.at("kernel_trace"), compiled.at("launches"))},
              {"eager_kernels", kernel_count(compiled.at("eager_kernel_trace"), compiled.at("eager_launches"))},
              {"max_error", compiled.at("accuracy").at("max_error")},
              {"rms_error", compiled.at("accuracy").at("rms_error")},
              {"eager_max_error", compiled.at("accuracy").at("eager_max_error")},
              {"eager_rms_error", compiled.at("accuracy").at("eager_rms_error")},
              {"breaks", compiled.at("breaks")},
              {"timing", {{"eager", compiled.at("eager")}, {"steady", compiled.at("steady")}}},
              {"kernel_trace", compiled.at("kernel_trace")},
              {"report", compiled.at("report")}};
  if (target.freeze) row["freeze"] = true;
  if (target.numerics != "fast") row["numerics"] = target.numerics;
  if (!target.settings.empty()) row["settings"] = target.settings;
  row["break_even_calls"] =
      steady_ms < eager_ms ? Json(std::ceil(std::max(0.0, cost) / ((eager_ms - steady_ms) / 1e3))) : Json(nullptr);
  return row;
}

constexpr const char* header =
    "model        input                  device   mode             eager ms  steady ms  speed-up  latency ms  "
    "unsynced ms  cold s  warm s  eager cold s  peak MiB  eager MiB  kernels  eager  break-even  max error\n"
    "                                                                                               "
    "   (wrong!)\n";

std::string table_line(const Json& row) {
  const auto mib = [&](const char* key) { return row.at(key).get<double>() / (1 << 20); };
  const std::string pays =
      row.at("break_even_calls").is_null() ? "never" : fmt::format("{:.0f}", row.at("break_even_calls").get<double>());
  const std::string warm = row.at("warm_s").is_null() ? "-" : fmt::format("{:.3f}", row.at("warm_s").get<double>());
  return fmt::format(
      "{:<12} {:<22} {:<8} {:<16} {:>8.4g} {:>10.4g} {:>8.2f}x {:>11.4g} {:>12.4g} {:>7.3f} {:>7} {:>13.3f} {:>9.1f} "
      "{:>10.1f} {:>8} {:>6} {:>11} {:>10.3g}\n",
      row.at("model").get<std::string>(), row.at("shape").get<std::string>(), row.at("device").get<std::string>(),
      row.at("mode").get<std::string>(), row.at("eager_ms").get<double>(), row.at("steady_ms").get<double>(),
      row.at("speedup").get<double>(), row.at("latency_ms").get<double>(),
      row.at("unsynchronised_ms_wrong").get<double>(), row.at("cold_s").get<double>(), warm,
      row.at("eager_cold_s").get<double>(), mib("peak_bytes"), mib("eager_peak_bytes"),
      row.at("kernels").get<int64_t>(), row.at("eager_kernels").get<int64_t>(), pays,
      row.at("max_error").get<double>());
}

/// Adds what was traced to a row; gives it as text.
std::string add_kernels(Json& row, const Json& compiled) {
  const Json traced = compiled.value("traced", Json(nullptr));
  row["kernel_table"] = traced.is_object() ? traced.at("compiled") : Json(nullptr);
  row["eager_kernel_table"] = traced.is_object() ? traced.at("eager") : Json(nullptr);
  return kernels_text(row, traced);
}

/// The rows of peers' files, read before anything is measured.
std::vector<bench::Results> read_peers(const BenchOptions& options) {
  std::vector<bench::Results> results;
  for (const std::string& file : options.peers) {
    for (bench::Results& one : bench::read_peer(file)) results.push_back(std::move(one));
  }
  return results;
}

/// Joins `own` with what peers measured, prints the table and writes the files that were asked for.
void show_joined(const BenchOptions& options, std::vector<bench::Results> own, const std::vector<bench::Results>& peers,
                 const std::string& reports) {
  own.insert(own.end(), peers.begin(), peers.end());
  const bench::Comparison comparison = bench::join(std::move(own));
  const std::string text = bench::to_text(comparison);
  fmt::print("{}", text);
  // A file's name need not be UTF-8.
  const auto replace = bench::Json::error_handler_t::replace;
  if (!options.json.empty()) write_file(options.json, bench::to_json(comparison).dump(1, ' ', false, replace));
  if (!options.html.empty()) write_file(options.html, bench::to_html(comparison));
  if (!options.text.empty()) write_file(options.text, text + reports);
}

/// Measures every model and mode, prints rows as they come and writes the files that were asked for.
int measure_all(const BenchOptions& options, const std::vector<TargetOptions>& targets, bool with_reports) {
  check_writable(options.json);
  check_writable(options.text);
  check_writable(options.html);
  const std::vector<bench::Results> peers = read_peers(options);
  Json document = {{"sinter", "0.1.0"},
                   {"environment", bench::environment(parse_device(options.target.device))},
                   {"rows", Json::array()}};
  std::string text = header;
  fmt::print("{}", header);
  int code = 0;
  std::string reports;
  for (const TargetOptions& target : targets) {
    const auto eager = measure(target, "default", "eager", options.budget, "off");
    for (const std::string& mode : options.modes) {
      const auto compiled = eager ? measure_compiled(target, mode, options) : std::nullopt;
      if (!compiled || !compiled->at("accuracy").at("ok").get<bool>()) {
        const std::string why = compiled ? compiled->at("accuracy").dump() : "the measuring process failed";
        fmt::print(stderr, "sinter: {} {}: {}\n", target.model, mode,
                   compiled ? "results disagree with eager and are not timed: " + why : why);
        code = 1;
        continue;
      }
      Json row = make_row(target, mode, *compiled, *eager);
      std::string lines = table_line(row);
      if (options.kernels) lines += add_kernels(row, *compiled);
      fmt::print("{}", lines);
      std::fflush(stdout);
      text += lines;
      reports += "\n" + compiled->at("report_text").get<std::string>();
      document["rows"].push_back(row);
    }
  }
  if (with_reports) fmt::print("{}", reports);
  if ((!peers.empty() || !options.html.empty()) && !document["rows"].empty()) {
    show_joined(options, bench::parse_results(document, "this run"), peers, reports);
    return code;
  }
  if (!options.json.empty()) write_file(options.json, document.dump(1));
  if (!options.text.empty()) write_file(options.text, text + reports);
  return code;
}

}  // namespace

int bench(const BenchOptions& options) {
  if (!options.from.empty()) return compare(options);
  for (const std::string& mode : options.modes) (void)parse_mode(mode);
  if (options.target.model.empty()) return measure_all(options, standard_set(options.target), false);
  if (!is_file(options.target.model)) (void)bench::find_model(options.target.model);
  return measure_all(options, {options.target}, true);
}

int compare(const BenchOptions& options) {
  std::vector<bench::Results> own = bench::read_results(options.from);
  const std::vector<bench::Results> peers = read_peers(options);
  check_writable(options.json);
  check_writable(options.text);
  check_writable(options.html);
  show_joined(options, std::move(own), peers, "");
  return 0;
}

int demo(const BenchOptions& options) {
  const bool gpu = parse_device(options.target.device).is_cuda();
  const std::string dtype = gpu ? "f16" : "f32";
  BenchOptions both = options;
  if (both.text.empty()) both.text = "sinter-demo.txt";
  const int code = measure_all(both,
                               {with(options.target, "gelu_mlp", dtype + "[128,768]", dtype),
                                with(options.target, "resnet50", dtype + "[1,3,224,224]", dtype)},
                               true);
  fmt::print("\nreport written to {}\n", both.text);
  return code;
}

}  // namespace sinter::command
