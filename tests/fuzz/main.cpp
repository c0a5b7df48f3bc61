// sinter_fuzz: runs random programs eager and compiled, in several processes, and reports what differs.
#include <ATen/Parallel.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "generate.h"
#include "print.h"
#include "summary.h"

namespace {

using sinter::test::fuzz::Summary;

struct Settings {
  uint64_t seed = 1;
  int64_t programs = 1000;
  int jobs = 1;
  std::string device = "cpu";
  std::string report;
  bool print = false;
  bool shrinks = true;
};

/// What the processes tell each other: the seed that each of them is at.
struct Progress {
  volatile uint64_t seed[256];
};

/// Every jobs-th seed from `from` on.
Summary run_share(const Settings& settings, uint64_t from, volatile uint64_t& at_seed) {
  at::set_num_threads(1);
  Summary summary;
  const uint64_t end = settings.seed + static_cast<uint64_t>(settings.programs);
  for (uint64_t seed = from; seed < end; seed += static_cast<uint64_t>(settings.jobs)) {
    at_seed = seed;
    run_seed(seed, at::Device(settings.device), summary, settings.shrinks);
  }
  return summary;
}

pid_t start(const Settings& settings, uint64_t from, volatile uint64_t& at_seed, const std::string& file) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::ofstream(file) << run_share(settings, from, at_seed).json();
  std::cout.flush();
  _exit(0);
}

/// One share, in a process of its own; where a program crashes it, another goes on with the next.
class Worker {
 public:
  Worker(const Settings& settings, int index, volatile uint64_t& at_seed, std::string folder)
      : settings_(settings), index_(index), at_seed_(at_seed), folder_(std::move(folder)) {
    go(settings.seed + static_cast<uint64_t>(index));
  }

  [[nodiscard]] pid_t child() const { return child_; }
  /// True when the share is done.
  bool ended(int status, Summary& summary) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      std::stringstream text;
      text << std::ifstream(file_).rdbuf();
      unlink(file_.c_str());
      summary.add(Summary::from_json(text.str()));
      return true;
    }
    const uint64_t seed = at_seed_;
    const auto how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "an exception";
    const auto program = sinter::test::fuzz::to_cpp(sinter::test::fuzz::generate(seed, at::kCPU));
    summary.failures.push_back({seed, "ended by " + how + "; what its process found before is not counted", program});
    if (seed + static_cast<uint64_t>(settings_.jobs) >= settings_.seed + static_cast<uint64_t>(settings_.programs))
      return true;
    go(seed + static_cast<uint64_t>(settings_.jobs));
    return false;
  }

 private:
  void go(uint64_t from) {
    file_ = folder_ + "/" + std::to_string(index_) + ".json";
    child_ = start(settings_, from, at_seed_, file_);
  }

  const Settings& settings_;
  int index_;
  volatile uint64_t& at_seed_;
  std::string folder_;
  std::string file_;
  pid_t child_ = 0;
};

Summary run_all(const Settings& settings) {
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::string folder = "/tmp/sinter-fuzz-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder under /tmp can be made");
  Summary summary;
  summary.device = settings.device;
  summary.first_seed = settings.seed;
  const auto start = std::chrono::steady_clock::now();
  std::vector<Worker> workers;
  for (int i = 0; i < settings.jobs; ++i) workers.emplace_back(settings, i, progress->seed[i], folder);
  while (!workers.empty()) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, 0);
    const auto worker = std::find_if(workers.begin(), workers.end(), [&](const auto& w) { return w.child() == child; });
    if (worker != workers.end() && worker->ended(status, summary)) {
      std::vector<Worker> rest;
      for (auto& other : workers) {
        if (other.child() != child) rest.push_back(other);
      }
      workers.swap(rest);
    }
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rmdir(folder.c_str());
  return summary;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app{"random LibTorch programs, eager and compiled"};
  app.add_option("--programs", settings.programs, "how many")->check(CLI::PositiveNumber);
  app.add_option("--seed", settings.seed, "of the first program");
  app.add_option("--jobs", settings.jobs, "processes")->check(CLI::Range(1, 256));
  app.add_option("--device", settings.device, "cpu or cuda");
  app.add_option("--report", settings.report, "file for the report as JSON");
  app.add_flag("--print", settings.print, "print the programs instead of running them");
  app.add_flag("!--no-shrink", settings.shrinks, "print programs that fail as they are");
  CLI11_PARSE(app, argc, argv);
  if (settings.print) {
    for (int64_t i = 0; i < settings.programs; ++i) {
      std::cout << to_cpp(
          sinter::test::fuzz::generate(settings.seed + static_cast<uint64_t>(i), at::Device(settings.device)));
    }
    return 0;
  }
  const auto summary = run_all(settings);
  std::cout << summary.text();
  if (!settings.report.empty()) std::ofstream(settings.report) << summary.json() << "\n";
  return summary.failures.empty() ? 0 : 1;
}
