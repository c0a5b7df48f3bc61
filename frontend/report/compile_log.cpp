#include "frontend/report/compile_log.h"

#include <unistd.h>

#include "frontend/report/compile_times_file.h"

namespace sinter {
namespace frontend {
namespace {

/// The row that an event's seconds belong to.
std::string row_of(const CompileEvent& event) {
  switch (event.kind) {
    case CompileEvent::Kind::call:
      return "capture";
    case CompileEvent::Kind::entry:
      return "other";
    case CompileEvent::Kind::phase:
      return event.name;
    case CompileEvent::Kind::kernel:
      break;
  }
  return {};
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

int64_t this_thread() { return static_cast<int64_t>(::gettid()); }

CompileLog::CompileLog(size_t most_events, size_t most_functions)
    : most_events_(most_events), most_functions_(most_functions), started_(std::chrono::steady_clock::now()) {
  times_.program = program_name();
  times_.process = ::getpid();
  times_.started = seconds_since_1970();
}

CompileLog& CompileLog::of_process() {
  static CompileLog& log = *new CompileLog();
  static const bool writes = write_compile_times_at_exit();
  static_cast<void>(writes);
  return log;
}

CompileLog::Sums& CompileLog::sums_of(const std::string& function) {
  const auto known = functions_.find(function);
  if (known != functions_.end()) return known->second;
  const std::string& name = functions_.size() < most_functions_ ? function : "(other functions)";
  Sums& sums = functions_[name];
  sums.name = name;
  return sums;
}

int64_t CompileLog::next_entry(const std::string& function) {
  const std::lock_guard lock(mutex_);
  return ++sums_of(function).entries;
}

void CompileLog::add(std::vector<CompileEvent> events) {
  const std::lock_guard lock(mutex_);
  for (CompileEvent& event : events) {
    count(event);
    keep(std::move(event));
  }
}

void CompileLog::add_call(const std::string& function, Time begin, double seconds) {
  const double start = seconds_at(begin);
  const double end = seconds_at(std::chrono::steady_clock::now());
  add({{.kind = CompileEvent::Kind::call,
        .name = {},
        .origin = {},
        .function = function,
        .thread = this_thread(),
        .start = start,
        .duration = end - start,
        .counted = seconds}});
}

double CompileLog::seconds_at(Time time) const { return std::chrono::duration<double>(time - started_).count(); }

CompileTimes CompileLog::snapshot() const {
  const std::lock_guard lock(mutex_);
  CompileTimes times = times_;
  times.events.assign(events_.begin(), events_.end());
  return times;
}

void CompileLog::count(const CompileEvent& event) {
  if (event.kind != CompileEvent::Kind::kernel) return count(event.function, row_of(event), event.counted);
  Sums& sums = sums_of(event.function);
  if (sums.kernels == Sums::none) {
    sums.kernels = times_.kernels.size();
    times_.kernels.push_back({.function = sums.name});
  }
  CompileTimes::Kernels& kernels = times_.kernels[sums.kernels];
  ++(event.origin == "shared" ? kernels.shared : event.origin == "disk" ? kernels.disk : kernels.built);
  kernels.seconds += event.duration;
}

void CompileLog::count(const std::string& function, const std::string& phase, double seconds) {
  const std::string& name = sums_of(function).name;
  const auto [row, is_new] = rows_.try_emplace({name, phase}, times_.rows.size());
  if (is_new) times_.rows.push_back({name, phase, 0, 0});
  CompileTimes::Row& sum = times_.rows[row->second];
  ++sum.count;
  sum.seconds += seconds;
}

void CompileLog::keep(CompileEvent event) {
  events_.push_back(std::move(event));
  if (events_.size() <= most_events_) return;
  events_.pop_front();
  ++times_.dropped;
}

}  // namespace frontend

CompileTimes compile_times() { return frontend::CompileLog::of_process().snapshot(); }

}  // namespace sinter
