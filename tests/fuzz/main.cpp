// sinter_fuzz: runs random programs eager and compiled, in several processes, and reports what differs.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <list>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "compiler/support/planted.h"
#include "generate.h"
#include "print.h"
#include "summary.h"

namespace {

using sinter::test::fuzz::Summary;
using sinter::test::hostile::Place;

struct Settings {
  uint64_t seed = 1;
  int64_t programs = 1000;
  int jobs = 1;
  std::string device = "cpu";
  std::string mode = "default";
  bool trusted = false;
  std::string report;
  double least_replayed = sinter::test::fuzz::kLeastReplayed;
  bool print = false;
  bool shrinks = true;
  bool until_first = false;
};

/// Random programs resize outputs and divide by nothing as they please: LibTorch's warnings would bury the differences.
class NoWarnings final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& /*warning*/) override {}
};

/// A program that ended its process.
struct Crash {
  uint64_t seed = 0;
  std::string how;
};

const std::map<std::string, sinter::Mode>& modes() {
  static const std::map<std::string, sinter::Mode> all{{"default", sinter::Mode::Default},
                                                       {"reduce-overhead", sinter::Mode::ReduceOverhead}};
  return all;
}

Place place_of(const Settings& settings) {
  const at::Device device(settings.device);
  return {device.is_cuda() && !device.has_index() ? at::Device(at::kCUDA, 0) : device, modes().at(settings.mode),
          settings.trusted ? sinter::Replay::trusted : sinter::Replay::checked};
}

/// Throws where an assertion has failed on a GPU: nothing runs there from then on, eager nor compiled.
void require_alive(at::Device device) {
  if (device.is_cuda()) (void)at::ones({1}, device).item<float>();
}

/// Every jobs-th seed from `from` on.
Summary run_share(const Settings& settings, uint64_t from, volatile uint64_t& at_seed) {
  at::set_num_threads(1);
  NoWarnings silent;
  const c10::WarningUtils::WarningHandlerGuard guard(&silent);
  const Place place = place_of(settings);
  Summary summary;
  const uint64_t end = settings.seed + static_cast<uint64_t>(settings.programs);
  for (uint64_t seed = from; seed < end; seed += static_cast<uint64_t>(settings.jobs)) {
    if (settings.until_first && !summary.failures.empty()) break;
    at_seed = seed;
    run_seed(seed, place, summary, settings.shrinks);
    require_alive(place.device);
  }
  return summary;
}

Summary print_crash(const Settings& settings, const Crash& crash) {
  Summary summary;
  const auto program = to_cpp(sinter::test::fuzz::generate(crash.seed, place_of(settings)));
  summary.failures.push_back({crash.seed, crash.how, program});
  return summary;
}

/// One share, in a process of its own; where a program crashes it, another one prints the program, and a third goes on
/// with the next. The process that starts them calls nothing of LibTorch, which could initialise CUDA: its children
/// could not use the device then.
class Worker {
 public:
  Worker(const Settings& settings, int index, volatile uint64_t& at_seed, const std::string& folder)
      : settings_(settings),
        at_seed_(at_seed),
        file_(folder + "/" + std::to_string(index) + ".json"),
        from_(settings.seed + static_cast<uint64_t>(index)) {
    start();
  }

  [[nodiscard]] pid_t child() const { return child_; }
  /// True when the share is done.
  bool ended(int status, Summary& summary) {
    const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (well) summary.add(result());
    if (well && !crash_) return true;
    if (crash_) {
      if (!well) summary.failures.push_back({crash_->seed, crash_->how + "; it cannot be printed", ""});
      crash_.reset();
    } else {
      const auto how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status)) : "an exception";
      crash_ = {at_seed_, "ended by " + how + "; what its process found before is not counted"};
      from_ = crash_->seed + static_cast<uint64_t>(settings_.jobs);
    }
    if (!crash_ && from_ >= settings_.seed + static_cast<uint64_t>(settings_.programs)) return true;
    start();
    return false;
  }

 private:
  [[nodiscard]] Summary result() const {
    std::stringstream text;
    text << std::ifstream(file_).rdbuf();
    unlink(file_.c_str());
    return Summary::from_json(text.str());
  }

  void start() {
    if (!crash_) at_seed_ = from_;
    child_ = fork();
    if (child_ != 0) return;
    try {
      std::ofstream(file_) << (crash_ ? print_crash(settings_, *crash_) : run_share(settings_, from_, at_seed_)).json();
    } catch (const std::exception& error) {
      std::cerr << "seed " << at_seed_ << ": " << error.what() << std::endl;
      _exit(1);
    }
    std::cout.flush();
    _exit(0);
  }

  const Settings& settings_;
  volatile uint64_t& at_seed_;  ///< where the process is
  std::string file_;
  uint64_t from_ = 0;
  std::optional<Crash> crash_;  ///< to be printed
  pid_t child_ = 0;
};

void stop(std::list<Worker>& workers) {
  for (const Worker& worker : workers) {
    kill(worker.child(), SIGKILL);
    waitpid(worker.child(), nullptr, 0);
  }
  workers.clear();
}

Summary run_all(const Settings& settings) {
  const auto jobs = static_cast<size_t>(settings.jobs);
  auto* seeds = static_cast<volatile uint64_t*>(
      mmap(nullptr, sizeof(uint64_t) * jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (seeds == MAP_FAILED) throw std::runtime_error("no memory that processes share");
  std::string folder = "/tmp/sinter-fuzz-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no folder under /tmp can be made");
  Summary summary;
  summary.device = settings.device;
  summary.mode = settings.mode;
  summary.first_seed = settings.seed;
  const auto start = std::chrono::steady_clock::now();
  std::list<Worker> workers;
  for (int i = 0; i < settings.jobs; ++i) workers.emplace_back(settings, i, seeds[i], folder);
  while (!workers.empty()) {
    int status = 0;
    const pid_t child = waitpid(-1, &status, 0);
    const auto worker = std::find_if(workers.begin(), workers.end(), [&](const auto& w) { return w.child() == child; });
    if (worker != workers.end() && worker->ended(status, summary)) workers.erase(worker);
    if (settings.until_first && !summary.failures.empty()) stop(workers);
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::filesystem::remove_all(folder);
  return summary;
}

int list_bugs() {
  for (const auto& bug : sinter::kPlantedBugs) {
    const char* const seen[] = {"anywhere", "cuda-text", "graphs", "gpu", "cpu"};
    std::cout << bug.name << " " << seen[static_cast<int>(bug.seen)] << "\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app{"random LibTorch programs, eager and compiled"};
  app.add_option("--programs", settings.programs, "how many")->check(CLI::PositiveNumber);
  app.add_option("--seed", settings.seed, "of the first program");
  app.add_option("--jobs", settings.jobs, "processes")->check(CLI::Range(1, 256));
  app.add_option("--device", settings.device, "cpu, cuda or cuda:1");
  app.add_flag("--trusted", settings.trusted,
               "replays leave the host code out (Replay::trusted): programs without host effects");
  app.add_option("--mode", settings.mode, "default or reduce-overhead")->check(CLI::IsMember(modes()));
  app.add_option("--report", settings.report, "file for the report as JSON");
  app.add_option("--least-replayed", settings.least_replayed,
                 "fail where compiled code answers less than this share (%) of the programs or of the calls [50]");
  app.add_flag("--print", settings.print, "print the programs instead of running them");
  app.add_flag("!--no-shrink", settings.shrinks, "print programs that fail as they are");
  app.add_flag("--until-first", settings.until_first, "stop at the first difference");
  bool lists_bugs = false;
  app.add_flag("--list-bugs", lists_bugs, "print the bugs that can be planted, and where each can be seen");
  CLI11_PARSE(app, argc, argv);
  if (lists_bugs) return list_bugs();
  if (settings.print) {
    for (int64_t i = 0; i < settings.programs; ++i) {
      std::cout << to_cpp(sinter::test::fuzz::generate(settings.seed + static_cast<uint64_t>(i), place_of(settings)));
    }
    return 0;
  }
  const auto summary = run_all(settings);
  std::cout << summary.text();
  if (!settings.report.empty()) std::ofstream(settings.report) << summary.json() << "\n";
  const bool too_few = summary.replayed_percent() < settings.least_replayed;
  if (too_few) std::cout << "too few were replayed: at least " << settings.least_replayed << " % must be\n";
  return summary.failures.empty() && !too_few ? 0 : 1;
}
