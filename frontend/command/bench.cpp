#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/compare/join.h"
#include "bench/compare/page.h"
#include "bench/measure/environment.h"
#include "bench/models/model.h"
#include "compiler/support/errors.h"
#include "frontend/command/bench_kernels.h"
#include "frontend/command/bench_process.h"
#include "frontend/command/bench_row.h"
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

/// What one model's processes measured: of eager, and of each mode.
struct Measured {
  std::optional<Json> eager;  ///< nothing where a process failed
  std::vector<double> eager_cold_s;
  struct OfMode {
    std::optional<Json> compiled;  ///< nothing where a process failed
    std::vector<double> cold_s;
    std::vector<double> warm_s;
  };
  std::vector<OfMode> modes;
};

void measure_eager(const TargetOptions& target, double budget, Measured& measured) {
  auto row = measure(target, "default", {.kind = "eager", .budget = budget}, "off");
  if (row) measured.eager_cold_s.push_back(row->at("eager_cold_s"));
  if (!measured.eager) measured.eager = std::move(row);
}

/// The compiled function from an empty kernel cache and then, for its first call (and where asked for, its kernels and
/// its losses), in other processes with what the first one left in it. The first round measures all, later ones first
/// calls.
void measure_mode(const TargetOptions& target, const std::string& mode, bool all, const BenchOptions& options,
                  Measured::OfMode& measured) {
  const TemporaryFolder cache;
  const auto in_child = [&](const std::string& kind) {
    return measure(target, mode, {.kind = kind, .budget = options.budget, .losses = options.losses}, cache.path());
  };
  auto row = in_child(all ? "compiled" : "start");
  if (!row) return;
  measured.cold_s.push_back(row->at("cold_s"));
  const auto warm = in_child("start");
  if (warm) measured.warm_s.push_back(warm->at("cold_s"));
  if (!all) return;
  if (options.kernels && row->at("device").get<std::string>().starts_with("cuda")) {
    const auto kernels = in_child("kernels");
    if (kernels) (*row)["traced"] = kernels->at("traced");
  }
  if (options.losses > 0) {
    const auto losses = in_child("losses");
    if (losses) (*row)["losses"] = losses->at("losses");
  }
  measured.compiled = std::move(row);
}

/// Eager and every mode, `options.starts` times in fresh processes. The one that begins takes turns, after a process
/// that does not count: whoever is first finds LibTorch's files on the disk, the others find them in memory.
Measured measure_model(const TargetOptions& target, const BenchOptions& options) {
  Measured measured;
  measured.modes.resize(options.modes.size());
  (void)measure(target, "default", {.kind = "eager", .budget = options.budget}, "off");
  for (int64_t round = 0; round < options.starts; ++round) {
    const bool eager_first = round % 2 == 0;
    if (eager_first) measure_eager(target, options.budget, measured);
    for (size_t i = 0; i < options.modes.size(); ++i) {
      const size_t mode = eager_first ? i : options.modes.size() - 1 - i;
      measure_mode(target, options.modes[mode], round == 0, options, measured.modes[mode]);
    }
    if (!eager_first) measure_eager(target, options.budget, measured);
    if (!measured.eager) break;
  }
  return measured;
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
  std::string text = row_header();
  fmt::print("{}", text);
  int code = 0;
  std::string reports;
  for (const TargetOptions& target : targets) {
    const Measured measured = measure_model(target, options);
    for (size_t i = 0; i < options.modes.size(); ++i) {
      const Measured::OfMode& mode = measured.modes[i];
      const bool complete = measured.eager && mode.compiled;
      if (!complete || !mode.compiled->at("accuracy").at("ok").get<bool>()) {
        const std::string why = complete ? mode.compiled->at("accuracy").dump() : "the measuring process failed";
        fmt::print(stderr, "sinter: {} {}: {}\n", target.model, options.modes[i],
                   complete ? "results disagree with eager and are not timed: " + why : why);
        code = 1;
        continue;
      }
      const Starts starts{mode.cold_s, mode.warm_s, measured.eager_cold_s};
      Json row = make_row(target, options.modes[i], *mode.compiled, *measured.eager, starts);
      std::string lines = row_line(row);
      lines += losses_line(row);
      if (options.kernels) lines += add_kernels(row, *mode.compiled);
      fmt::print("{}", lines);
      std::fflush(stdout);
      text += lines;
      reports += "\n" + mode.compiled->at("report_text").get<std::string>();
      document["rows"].push_back(row);
      if (!options.json.empty() && options.json != "-") write_file(options.json, document.dump(1));
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
  if (options.losses > 0 && !options.target.train) {
    throw UserError("--losses compares training steps with eager's; add --train");
  }
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
  both.starts = 1;
  if (both.text.empty()) both.text = "sinter-demo.txt";
  const int code = measure_all(both,
                               {with(options.target, "gelu_mlp", dtype + "[128,768]", dtype),
                                with(options.target, "resnet50", dtype + "[1,3,224,224]", dtype)},
                               true);
  fmt::print("\nreport written to {}\n", both.text);
  return code;
}

}  // namespace sinter::command
