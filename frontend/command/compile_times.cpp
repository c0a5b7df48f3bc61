#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/compare/compile_costs.h"
#include "bench/compare/compile_page.h"
#include "bench/compare/compile_trace.h"
#include "bench/models/model.h"
#include "compiler/support/errors.h"
#include "frontend/command/bench_process.h"
#include "frontend/command/commands.h"
#include "frontend/command/process.h"
#include "frontend/report/compile_times_file.h"

namespace sinter::command {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

/// What one process spent, and what was measured of calls in it.
struct CompiledProcess {
  CompileTimes times;
  Json measured;  ///< null: nothing

  [[nodiscard]] Json json() const {
    Json all = Json::parse(times.json());
    if (!measured.is_null()) all["measured"] = measured;
    return all;
  }
};

Json measured_of(const Json& process, const std::string& from) {
  if (!process.contains("measured")) return nullptr;
  try {
    const Json& given = process.at("measured");
    return {{"name", given.at("name").get<std::string>()},
            {"eager_ms", given.at("eager_ms").get<double>()},
            {"compiled_ms", given.at("compiled_ms").get<double>()}};
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("{}: 'measured' is no measurement: {}", from, error.what()));
  }
}

std::vector<CompiledProcess> processes_of(const std::string& text, const std::string& from) {
  const auto times = frontend::read_compile_times(text, from);
  const Json whole = Json::parse(text);
  std::vector<CompiledProcess> processes;
  for (size_t i = 0; i < times.size(); ++i) {
    processes.push_back({times[i], measured_of(whole.is_array() ? whole[i] : whole, from)});
  }
  return processes;
}

/// The file itself, or those of a folder, by name.
std::vector<std::string> files_at(const std::string& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  if (files.empty()) {
    throw UserError(path + ": holds no .json file. Run programs with SINTER_COMPILE_TIMES=" + path);
  }
  return files;
}

std::string whole_file(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw UserError(path + ": cannot be read, or is empty");
  return text.str();
}

std::vector<CompiledProcess> read_all(const std::vector<std::string>& from) {
  std::vector<CompiledProcess> all;
  for (const std::string& path : from) {
    for (const std::string& file : files_at(path)) {
      for (auto& process : processes_of(whole_file(file), file)) all.push_back(std::move(process));
    }
  }
  if (all.empty()) throw UserError(from.front() + ": tells of no process");
  return all;
}

/// Every mode in a fresh process, from an empty kernel cache.
std::vector<CompiledProcess> compile_all(const CompileTimesOptions& options) {
  if (options.target.model.empty()) {
    throw UserError("name a model to compile, or files with --from. Run sinter compile-times --help");
  }
  for (const std::string& mode : options.modes) (void)parse_mode(mode);
  if (!is_file(options.target.model)) (void)bench::find_model(options.target.model);
  std::vector<CompiledProcess> all;
  for (const std::string& mode : options.modes) {
    const TemporaryFolder cache;
    const auto row = measure(options.target, mode, {.kind = "compile", .budget = options.budget}, cache.path());
    if (!row) throw UserError(fmt::format("{} {}: the measuring process failed", options.target.model, mode));
    for (auto& process : processes_of(row->at("compile_times").dump(), mode)) all.push_back(std::move(process));
  }
  return all;
}

std::string measured_line(const CompiledProcess& process) {
  const auto eager = process.measured.at("eager_ms").get<double>();
  const auto compiled = process.measured.at("compiled_ms").get<double>();
  return pays_line(process.times.total(), eager, compiled);
}

std::string text_of(const std::vector<CompiledProcess>& processes) {
  std::string text;
  double all = 0;
  for (const CompiledProcess& process : processes) {
    all += process.times.total();
    text += bench::name_of_process(process.json()) + "\n" + process.times.text();
    if (!process.measured.is_null()) text += measured_line(process);
    text += '\n';
  }
  return text + fmt::format("{} processes, {:.4f} s in all: the sum of their totals\n", processes.size(), all);
}

}  // namespace

std::string pays_line(double compile_seconds, double eager_ms, double compiled_ms) {
  const auto calls = bench::pays_off_after(compile_seconds, eager_ms, compiled_ms);
  const std::string when = calls ? fmt::format("has paid after {:.0f} calls", *calls) : "never pays";
  return fmt::format("eager {:.4g} ms a call, compiled {:.4g} ms: compiling {}\n", eager_ms, compiled_ms, when);
}

int show_compile_times(const CompileTimesOptions& options) {
  for (const std::string& file : {options.json, options.trace, options.html}) check_writable(file);
  const auto processes = options.from.empty() ? compile_all(options) : read_all(options.from);
  fmt::print("{}", text_of(processes));
  Json all = Json::array();
  for (const CompiledProcess& process : processes) all.push_back(process.json());
  if (!options.json.empty()) write_file(options.json, all.dump(1));
  if (!options.trace.empty()) write_file(options.trace, bench::compile_trace(all));
  if (!options.html.empty()) write_file(options.html, bench::compile_page(all));
  return 0;
}

}  // namespace sinter::command
