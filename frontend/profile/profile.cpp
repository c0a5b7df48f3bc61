#include "sinter/profile.h"

#include <ATen/Context.h>
#include <c10/util/Logging.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "frontend/profile/attribution.h"
#include "frontend/profile/device_limits.h"
#include "frontend/profile/device_work.h"
#include "frontend/profile/graph_kernels.h"
#include "frontend/profile/memory_log.h"
#include "frontend/profile/module_times.h"
#include "frontend/profile/operator_log.h"
#include "frontend/profile/segments.h"
#include "frontend/profile/steady.h"
#include "frontend/profile/step_shares.h"
#include "runtime/stopwatch.h"

namespace sinter {
namespace {

using frontend::OperatorLog;
using frontend::StepPlaces;

int64_t clock_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// While it lives, LibTorch says nothing below an error: its allocator of the CPU warns of blocks that were there
/// before it was listened to.
class NoWarnings {
 public:
  NoWarnings() { FLAGS_caffe2_log_level = std::max(level_, c10::GLOG_ERROR); }
  ~NoWarnings() { FLAGS_caffe2_log_level = level_; }
  NoWarnings(const NoWarnings&) = delete;
  NoWarnings& operator=(const NoWarnings&) = delete;

 private:
  int level_ = FLAGS_caffe2_log_level;
};

/// Steps of one program in one mode, from the first that warms it up to the last that is traced.
class ProfileRun {
 public:
  ProfileRun(const std::vector<frontend::NamedModule>& modules, const ProfileOptions& options,
             const std::function<void()>& step, int64_t warmup, frontend::StepPlaces places)
      : modules_(modules), options_(options), step_(step), warmup_(warmup), places_(std::move(places)) {}

  /// What a compiled program is profiled with beside its step.
  struct Compiled {
    std::function<Report()> report = {};
    const ModeProfile* direct = nullptr;  ///< the same without graphs, whose operators graphs replay; null: none
  };

  ModeProfile run(std::string mode, const Compiled& compiled) {
    profile_.mode = std::move(mode);
    profile_.steps = options_.steps;
    profile_.deterministic = at::globalContext().deterministicAlgorithms();
    warm_up();
    profile_.device = device_.str();
    profile_.step_ms = runtime::median(timed_steps([](int64_t) {}, [](int64_t, int64_t) {}));
    trace();
    if (compiled.direct != nullptr && profile_.on_device()) {
      frontend::attribute_graphs(*compiled.direct, modules_, profile_);
    }
    if (compiled.report) profile_.segments = frontend::segments_of(compiled.report(), modules_);
    profile_.modules = frontend::module_times(modules_, profile_);
    frontend::add_saved(profile_);
    return std::move(profile_);
  }

 private:
  /// Owners are looked up from the first step on, which makes the states of an optimizer.
  void warm_up() {
    const OperatorLog log(modules_, {}, &places_);
    for (int64_t i = 0; i < warmup_; ++i) {
      places_.begin_step();
      step_();
    }
    device_ = log.device();
    synchronize();
  }

  void synchronize() const {
    if (device_.is_cpu()) return;
    runtime::push_activity_caller(frontend::profiles_own_caller);
    frontend::wait_for(device_);
    runtime::pop_activity_caller();
  }

  /// Milliseconds of each step, waited for.
  template <class Before, class Ended>
  std::vector<double> timed_steps(Before before, Ended ended) {
    std::vector<double> times;
    for (int64_t i = 0; i < options_.steps; ++i) {
      before(i);
      const int64_t begin = clock_nanoseconds();
      step_();
      synchronize();
      const int64_t end = clock_nanoseconds();
      times.push_back(static_cast<double>(end - begin) / 1e6);
      ended(begin, end);
    }
    return times;
  }

  void trace() {
    const auto recorded =
        device_.is_cpu() ? runtime::RecordedActivities{}
                         : runtime::record_activities(runtime::ActivityDetail::callers, [this] { trace_operators(); });
    if (!device_.is_cpu() && !recorded.trace) {
      profile_.notes.push_back(recorded.problem + ": kernels and waits are not seen, times are the host's");
    }
    if (!recorded.trace) trace_operators();
    profile_.operators = frontend::attribute(modules_, log_, origin_);
    if (recorded.trace) {
      // Both clocks run alike; they were read one after the other when recording began.
      const int64_t ahead = static_cast<int64_t>(recorded.trace->begun) - traced_from_;
      frontend::add_device_work(*recorded.trace, static_cast<uint64_t>(origin_ + ahead), profile_);
      profile_.shares = frontend::step_shares(frontend::timeline_of(*recorded.trace, traced_spans(ahead)));
    }
    profile_.memory = memory();
    note_limits();
  }

  /// The traced steps in a clock that is that much ahead of this process's.
  [[nodiscard]] std::vector<frontend::Span> traced_spans(int64_t ahead) const {
    std::vector<frontend::Span> spans;
    for (const auto& [begin, end] : traced_) {
      spans.push_back({static_cast<uint64_t>(begin + ahead), static_cast<uint64_t>(end + ahead)});
    }
    return spans;
  }

  void note_limits() {
    if (device_.is_cpu())
      profile_.notes.emplace_back("no GPU took part: times are the host's, and nothing is waited for");
    const auto is_segment = [](const ProfiledOperator& op) { return op.op.starts_with(frontend::segment_prefix); };
    if (profile_.mode == "eager") return;
    if (std::ranges::none_of(profile_.operators, is_segment)) {
      profile_.notes.emplace_back("no traced step ran compiled: `sinter run` and report() say why");
    }
  }

  void trace_operators() {
    traced_from_ = clock_nanoseconds();
    frontend::LogListener listener;
    if (!device_.is_cpu()) {
      listener.begin = [](int64_t position) { runtime::push_activity_caller(static_cast<uint64_t>(position)); };
      listener.end = runtime::pop_activity_caller;
    }
    const auto memory_log = std::make_shared<frontend::MemoryLog>(device_.type());
    OperatorLog log(modules_, std::move(listener));
    const NoWarnings quiet;
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, memory_log);
    step_();  // what a step leaves to the next one is known from here on
    synchronize();
    origin_ = clock_nanoseconds();
    const auto before = [&](int64_t step) {
      log.begin_step(step, options_.steps - step);
      (void)memory_log->take();
      modules_.refresh_gradients();
      before_ = frontend::known_blocks(modules_, device_.type());
    };
    const auto ended = [this](int64_t begin, int64_t end) { traced_.emplace_back(begin, end); };
    profile_.traced_step_ms = runtime::median(timed_steps(before, ended));
    log.end_step();
    events_ = memory_log->take();
    modules_.refresh_gradients();
    after_ = frontend::known_blocks(modules_, device_.type());
    log_ = log.take();
  }

  /// Of the last traced step.
  ProfiledMemory memory() {
    for (const frontend::MemoryEvent& event : events_) {
      if (event.bytes > 0 && event.position >= 0) {
        profile_.operators[static_cast<size_t>(event.position)].allocated += event.bytes;
      }
    }
    return frontend::memory_of_step(events_, before_, after_, profile_);
  }

  frontend::ModuleTable modules_;
  const ProfileOptions& options_;
  const std::function<void()>& step_;
  int64_t warmup_;
  frontend::StepPlaces places_;
  at::Device device_{at::kCPU};
  ModeProfile profile_;
  std::vector<frontend::LoggedOperator> log_;
  std::vector<frontend::MemoryEvent> events_;
  std::vector<frontend::KnownBlock> before_;
  std::vector<frontend::KnownBlock> after_;
  int64_t traced_from_ = 0;  ///< nanoseconds of this process's clock, as origin_
  int64_t origin_ = 0;
  std::vector<std::pair<int64_t, int64_t>> traced_;  ///< when traced steps began and ended
};

/// Every mode ran on the same device.
Profile with_limits(Profile profile, const ProfileOptions& options) {
  DeviceLimits limits{.problem = "not asked for"};
  if (options.limits) {
    const at::Device device(profile.modes.front().device);
    limits = frontend::measure_limits(device, frontend::product_dtypes(profile.modes));
  }
  for (ModeProfile& mode : profile.modes) mode.limits = limits;
  return profile;
}

}  // namespace

namespace detail {

Profile run_profile(const ProfiledProgram& program, const ProfileOptions& options) {
  if (options.steps < 1) throw UserError("profile: steps is below 1; trace at least one");
  if (options.warmup < 0) throw UserError("profile: warmup is below 0");
  if (program.self && !options.modules.empty()) {
    throw UserError("profile: modules: the callable is a module itself; leave the option out, or profile a lambda");
  }
  std::vector<frontend::NamedModule> modules = options.modules;
  if (program.self) modules = {{"", program.self}};
  for (const auto& [name, module] : modules) {
    if (module == nullptr) throw UserError("profile: module '" + name + "' is empty; construct it first");
  }
  Profile profile{.name = options.name};
  if (profile.name.empty()) profile.name = program.self ? frontend::class_name(*program.self) : "lambda";
  const auto run = [&](const std::function<void()>& step, int64_t warmup) {
    return ProfileRun(modules, options, step, warmup,
                      profile.modes.empty() ? StepPlaces() : StepPlaces(profile.modes.front()));
  };
  profile.modes.push_back(run(program.step, options.warmup).run("eager", {}));
  if (!program.compiled_step || !options.compile) return with_limits(std::move(profile), options);
  const int64_t warmup = std::max<int64_t>(options.warmup, frontend::calls_until_steady);
  std::optional<ModeProfile> direct;
  if (options.compile->mode != Mode::Default && profile.modes.front().on_device()) {
    direct = run(program.direct_step, warmup).run("direct", {});
  }
  profile.modes.push_back(
      run(program.compiled_step, warmup)
          .run(name(options.compile->mode), {.report = program.report, .direct = direct ? &*direct : nullptr}));
  return with_limits(std::move(profile), options);
}

}  // namespace detail

}  // namespace sinter
