#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <glob.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "bench/measure/environment.h"
#include "compiler/support/errors.h"
#include "compiler/support/fault.h"
#include "frontend/command/check_file.h"
#include "frontend/command/commands.h"
#include "frontend/command/process.h"

/// Files are checked in shares, each in a process of its own: one that crashes or hangs takes nothing but itself along,
/// and the next process goes on behind it.
namespace sinter::command {
namespace {

using Json = nlohmann::json;
using Outcome = FileVerdict::Outcome;

constexpr size_t kShare = 64;  ///< files of one process
/// What a process returns that told of its last file and cannot go on: a kernel of that file took the device away.
constexpr int kDeviceLost = 75;

struct Sample {
  std::string file;
  std::string op;
  std::string dtype;
  bool values = true;
};

struct Checked {
  Sample sample;
  FileVerdict verdict;
};

std::vector<Sample> every_file(const std::string& folder) {
  std::vector<Sample> samples;
  glob_t found{};
  if (::glob((folder + "/*.pt2").c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      const std::string path = found.gl_pathv[i];
      const std::string file = path.substr(path.rfind('/') + 1);
      samples.push_back({file, file.substr(0, file.find('.')), "any"});
    }
  }
  ::globfree(&found);
  return samples;
}

/// What tests/conformance/export_samples.py listed, or every .pt2 file.
std::vector<Sample> samples_in(const std::string& folder) {
  std::ifstream index(folder + "/index.json");
  if (!index) return every_file(folder);
  std::vector<Sample> samples;
  try {
    const Json document = Json::parse(index);
    for (const Json& row : document.at("files")) {
      samples.push_back({row.at("file"), row.at("op"), row.at("dtype"), !row.at("uninitialised").get<bool>()});
    }
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("{}/index.json: not what export_samples.py writes: {}", folder, error.what()));
  }
  return samples;
}

std::string list_of(std::span<const Sample> samples) {
  std::string text;
  for (const Sample& sample : samples) text += fmt::format("{} {}\n", sample.values ? "values" : "kinds", sample.file);
  return text;
}

std::vector<std::string> child_arguments(const CheckFilesOptions& options, const std::string& list,
                                         const std::string& out) {
  std::vector<std::string> arguments{"check-files-child",
                                     options.folder,
                                     "--list",
                                     list,
                                     "--out",
                                     out,
                                     "--mode",
                                     options.target.mode,
                                     "--numerics",
                                     options.target.numerics,
                                     "--calls",
                                     fmt::format("{}", options.calls),
                                     "--timeout",
                                     fmt::format("{}", options.timeout)};
  if (!options.target.device.empty()) arguments.insert(arguments.end(), {"--device", options.target.device});
  return arguments;
}

std::string ending_of(int code, int64_t timeout) {
  if (code == 128 + SIGALRM) return fmt::format("it took longer than {} s", timeout);
  if (code > 128) return fmt::format("the process was ended by {}", ::strsignal(code - 128));
  return fmt::format("the process ended with code {}", code);
}

/// Runs one process for as many of these files as it survives, at least one. Gives what became of them.
std::vector<Checked> run_share(const CheckFilesOptions& options, std::span<const Sample> samples) {
  const TemporaryFile list;
  const TemporaryFile out;
  write_file(list.path(), list_of(samples));
  const int code = run_self(child_arguments(options, list.path(), out.path()), {"OMP_NUM_THREADS=1"});
  std::vector<Checked> checked;
  std::istringstream lines(out.read());
  for (std::string line; std::getline(lines, line) && checked.size() < samples.size();) {
    const Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (row.is_discarded()) break;
    checked.push_back({samples[checked.size()],
                       {outcome_named(row.at("outcome")), row.at("reason"), row.at("replays").get<int64_t>()}});
  }
  if (checked.size() < samples.size() && (code != kDeviceLost || checked.empty())) {
    checked.push_back({samples[checked.size()], {Outcome::ended, ending_of(code, options.timeout)}});
  }
  return checked;
}

std::vector<Checked> run_all(const CheckFilesOptions& options, const std::vector<Sample>& samples) {
  std::vector<Checked> all;
  std::mutex mutex;
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t begin = next.fetch_add(kShare); begin < samples.size(); begin = next.fetch_add(kShare)) {
      std::span<const Sample> left = std::span(samples).subspan(begin, std::min(kShare, samples.size() - begin));
      while (!left.empty()) {
        auto checked = run_share(options, left);
        left = left.subspan(checked.size());
        const std::lock_guard lock(mutex);
        for (Checked& one : checked) all.push_back(std::move(one));
        if (options.progress) fmt::print(stderr, "{} of {} files\n", all.size(), samples.size());
      }
    }
  };
  std::vector<std::thread> workers;
  for (int64_t i = 0; i < options.jobs; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  std::ranges::sort(all, {}, [](const Checked& one) { return std::pair(one.sample.dtype, one.sample.file); });
  return all;
}

using Counts = std::map<Outcome, int64_t>;
constexpr std::array kColumns{Outcome::agrees,   Outcome::ran_eager, Outcome::eager_throws, Outcome::refused,
                              Outcome::unstable, Outcome::differs,   Outcome::ended};

void print_row(const std::string& dtype, size_t operators, Counts counts) {
  int64_t files = 0;
  for (const auto& [outcome, count] : counts) files += count;
  fmt::print("{:<8} {:>9} {:>6}", dtype, operators, files);
  for (const Outcome outcome : kColumns) fmt::print(" {:>12}", counts[outcome]);
  fmt::print("\n");
}

/// One row a dtype, and what every file but those that agree was.
void print_table(const std::vector<Checked>& all) {
  fmt::print("{:<8} {:>9} {:>6}", "dtype", "operators", "files");
  for (const Outcome outcome : kColumns) fmt::print(" {:>12}", name_of(outcome));
  fmt::print("\n");
  std::map<std::string, Counts> rows;
  std::map<std::string, std::set<std::string>> operators;
  Counts total;
  std::set<std::string> every_operator;
  for (const Checked& one : all) {
    ++rows[one.sample.dtype][one.verdict.outcome];
    ++total[one.verdict.outcome];
    operators[one.sample.dtype].insert(one.sample.op);
    every_operator.insert(one.sample.op);
  }
  for (const auto& [dtype, counts] : rows) print_row(dtype, operators[dtype].size(), counts);
  print_row("all", every_operator.size(), total);
  for (const Outcome outcome : kColumns) {
    if (outcome == Outcome::agrees) continue;
    for (const Checked& one : all) {
      if (one.verdict.outcome != outcome) continue;
      fmt::print("{}  {}  {}\n", name_of(outcome), one.sample.file, one.verdict.reason);
    }
  }
}

Json to_json(const CheckFilesOptions& options, const std::vector<Checked>& all) {
  Json document = {
      {"sinter", "0.1.0"},           {"environment", bench::environment(parse_device(options.target.device))},
      {"mode", options.target.mode}, {"numerics", options.target.numerics},
      {"calls", options.calls},      {"dtypes", Json::object()}};
  std::map<std::string, std::set<std::string>> operators;
  for (const Outcome outcome : kColumns) document[name_of(outcome)] = Json::object();
  for (const Checked& one : all) {
    Json& row = document["dtypes"][one.sample.dtype];
    if (row.is_null()) row = Json::object();
    const auto add = [&row](const std::string& key) { row[key] = row.value(key, int64_t{0}) + 1; };
    add("files");
    add(name_of(one.verdict.outcome));
    operators[one.sample.dtype].insert(one.sample.op);
    if (one.verdict.outcome == Outcome::agrees) continue;
    document[name_of(one.verdict.outcome)][one.sample.file] = one.verdict.reason;
  }
  document.erase(name_of(Outcome::agrees));
  for (const auto& [dtype, names] : operators) document["dtypes"][dtype]["operators"] = names.size();
  return document;
}

}  // namespace

int check_files(const CheckFilesOptions& options) {
  check_writable(options.report);
  (void)parse_mode(options.target.mode);
  (void)parse_device(options.target.device);
  std::vector<Sample> samples = samples_in(options.folder);
  std::erase_if(samples, [&](const Sample& sample) { return sample.file.find(options.only) == std::string::npos; });
  if (samples.empty()) throw UserError(options.folder + ": it holds no .pt2 file to check");
  const std::vector<Checked> all = run_all(options, samples);
  print_table(all);
  if (!options.report.empty()) {
    const auto replace = Json::error_handler_t::replace;
    write_file(options.report, to_json(options, all).dump(1, ' ', false, replace));
  }
  const auto fails = [](const Checked& one) {
    return one.verdict.outcome == Outcome::differs || one.verdict.outcome == Outcome::ended;
  };
  return std::ranges::any_of(all, fails) ? 1 : 0;
}

/// True when nothing runs on the device any more in this process, as after an assertion that failed in a kernel.
bool is_lost(const c10::Device& device) {
  if (!device.is_cuda()) return false;
  try {
    return at::zeros({1}, device).item<float>() != 0;
  } catch (const c10::Error&) {
    return true;
  }
}

int check_files_child(const CheckFilesOptions& options, const std::string& list, const std::string& out) {
  std::ifstream files(list);
  std::ofstream results(out);
  const c10::Device device = parse_device(options.target.device);
  std::string what;
  std::string file;
  while (files >> what >> file) {
    ::alarm(static_cast<unsigned>(options.timeout));  // its signal ends this process
    TargetOptions target = options.target;
    target.model = options.folder + "/" + file;
    if (Faults::environment().planted("hang_at_" + file)) ::pause();
    const FileVerdict verdict = check_file(target, options.calls, what == "values");
    const Json row = {{"outcome", name_of(verdict.outcome)}, {"reason", verdict.reason}, {"replays", verdict.replays}};
    results << row.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    if (verdict.outcome != Outcome::agrees && is_lost(device)) return kDeviceLost;
  }
  ::alarm(0);
  return 0;
}

}  // namespace sinter::command
