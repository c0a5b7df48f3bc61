#include "frontend/report/entry_times.h"

#include <algorithm>
#include <utility>

namespace sinter::frontend {
namespace {

double seconds_between(CompileObserver::Time begin, CompileObserver::Time end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

EntryTimes::EntryTimes(CompileLog& log, std::string function)
    : log_(log),
      function_(std::move(function)),
      entry_(log.next_entry(function_)),
      begin_(std::chrono::steady_clock::now()) {}

void EntryTimes::phase(std::string_view name, Time begin, Time end) {
  add({.kind = CompileEvent::Kind::phase,
       .name = std::string(name),
       .origin = {},
       .function = {},
       .counted = seconds_between(begin, end)},
      begin, end);
}

void EntryTimes::kernel(std::string_view name, std::string_view origin, Time begin, Time end) {
  add({.kind = CompileEvent::Kind::kernel, .name = std::string(name), .origin = std::string(origin), .function = {}},
      begin, end);
}

void EntryTimes::finish(const std::string& signature) {
  const Time end = std::chrono::steady_clock::now();
  double in_phases = 0;
  {
    const std::lock_guard lock(mutex_);
    in_phases = in_phases_;
  }
  add({.kind = CompileEvent::Kind::entry,
       .name = signature,
       .origin = {},
       .function = {},
       .counted = std::max(0.0, seconds_between(begin_, end) - in_phases)},
      begin_, end);
  const std::lock_guard lock(mutex_);
  finished_ = true;
  log_.add(std::exchange(events_, {}));
}

void EntryTimes::add(CompileEvent event, Time begin, Time end) {
  event.function = function_;
  event.entry = entry_;
  event.thread = this_thread();
  event.start = log_.seconds_at(begin);
  event.duration = seconds_between(begin, end);
  const std::lock_guard lock(mutex_);
  in_phases_ += event.counted;
  events_.push_back(std::move(event));
  if (finished_) log_.add(std::exchange(events_, {}));
}

}  // namespace sinter::frontend
