#include "frontend/profile/device_work.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "compiler/support/symbol_name.h"
#include "frontend/profile/hints.h"
#include "runtime/busy_time.h"

namespace sinter::frontend {
namespace {

using runtime::Activity;

double microseconds(uint64_t from, uint64_t to) {
  return to >= from ? static_cast<double>(to - from) / 1e3 : -static_cast<double>(from - to) / 1e3;
}

int64_t operator_of(const Activity& activity, const ModeProfile& profile) {
  const bool known = activity.caller && *activity.caller < profile.operators.size();
  return known ? static_cast<int64_t>(*activity.caller) : -1;
}

void add_kernels(const std::vector<const Activity*>& work, uint64_t origin, ModeProfile& profile) {
  std::vector<runtime::Interval> intervals;
  for (const Activity* one : work) intervals.push_back({one->start, one->end, one->stream});
  const std::vector<double> busy = runtime::busy_microseconds(intervals);
  for (size_t i = 0; i < work.size(); ++i) {
    const int64_t position = operator_of(*work[i], profile);
    profile.kernels.push_back({.name = readable_symbol(work[i]->name),
                               .op = position,
                               .stream = work[i]->stream,
                               .start = microseconds(origin, work[i]->start),
                               .time = busy[i],
                               .in_graph = work[i]->in_graph});
    if (position < 0) continue;
    ProfiledOperator& op = profile.operators[static_cast<size_t>(position)];
    op.device += busy[i];
    ++op.launches;
  }
}

bool is_wait(const Activity& call, bool copies_pageable) {
  if (call.name.find("Synchronize") != std::string::npos) return true;
  const bool copy = call.name.starts_with("cudaMemcpy") || call.name.starts_with("cuMemcpy");
  return copy && (call.name.find("Async") == std::string::npos || copies_pageable);
}

/// Waits of equal causes as one, milliseconds and counts a step.
class WaitTable {
 public:
  WaitTable(const ModeProfile& profile, const std::vector<const Activity*>& work) : profile_(profile) {
    for (const Activity* one : work) starts_.push_back(one->start);
    std::ranges::sort(starts_);
  }

  void add(const Activity& call, bool pageable) {
    ProfiledWait wait{.call = call.name};
    const int64_t position = operator_of(call, profile_);
    std::string autograd;
    if (position >= 0) {
      const ProfiledOperator& op = profile_.operators[static_cast<size_t>(position)];
      wait.op = op.op;
      wait.phase = op.phase;
      wait.module = op.module;
      wait.line = op.line;
      autograd = op.autograd;
    }
    wait.hint = hint_for(wait.op, autograd, pageable);
    auto& known = waits_[{wait.call, wait.op, wait.phase, wait.module, wait.line, wait.hint}];
    if (known.count == 0) known = std::move(wait);
    ++known.count;
    known.milliseconds += microseconds(call.start, call.end) / 1e3;
    const auto next = std::ranges::lower_bound(starts_, call.end);
    if (next != starts_.end()) known.idle += microseconds(call.end, *next) / 1e3;
  }

  std::vector<ProfiledWait> take() {
    const int64_t steps = std::max<int64_t>(profile_.steps, 1);
    std::vector<ProfiledWait> waits;
    for (auto& [key, wait] : waits_) {
      wait.count = (wait.count + steps - 1) / steps;
      wait.milliseconds /= static_cast<double>(steps);
      wait.idle /= static_cast<double>(steps);
      waits.push_back(std::move(wait));
    }
    std::ranges::stable_sort(waits, std::greater(), &ProfiledWait::milliseconds);
    return waits;
  }

 private:
  using Key = std::tuple<std::string, std::string, Phase, int64_t, std::string, std::string>;
  const ModeProfile& profile_;
  std::vector<uint64_t> starts_;  ///< of the device's work, in order
  std::map<Key, ProfiledWait> waits_;
};

/// A call of the runtime may be recorded with that of the driver inside of it: the outer one counts.
bool is_inside(const Activity& call, const Activity* outer) {
  return outer != nullptr && call.start >= outer->start && call.end <= outer->end;
}

/// API calls that copies from or to memory that is not pinned belong to.
std::set<uint32_t> pageable_copies(const runtime::ActivityTrace& trace) {
  std::set<uint32_t> pageable;
  for (const Activity& activity : trace.activities) {
    if (activity.kind == Activity::Kind::copy && activity.pageable) pageable.insert(activity.launch);
  }
  return pageable;
}

bool is_launch(const Activity& call, const std::unordered_map<uint32_t, std::optional<size_t>>& launches) {
  return launches.contains(call.launch) || call.name.find("Launch") != std::string::npos;
}

}  // namespace

void add_device_work(const runtime::ActivityTrace& trace, uint64_t origin, ModeProfile& profile) {
  std::vector<const Activity*> work;
  std::vector<const Activity*> calls;
  const std::set<uint32_t> pageable = pageable_copies(trace);
  for (const Activity& activity : trace.activities) {
    if (activity.start < origin || activity.caller == profiles_own_caller) continue;
    (activity.kind == Activity::Kind::api_call ? calls : work).push_back(&activity);
  }
  add_kernels(work, origin, profile);
  std::ranges::stable_sort(calls, {}, [](const Activity* call) { return std::tuple(call->start, ~call->end); });
  WaitTable waits(profile, work);
  const Activity* outer = nullptr;
  for (const Activity* call : calls) {
    const bool from_pageable = pageable.contains(call->launch);
    if (!is_wait(*call, from_pageable) || is_inside(*call, outer)) continue;
    outer = call;
    waits.add(*call, from_pageable);
  }
  profile.waits = waits.take();
}

StepTimeline timeline_of(const runtime::ActivityTrace& trace, std::vector<Span> steps) {
  const std::set<uint32_t> pageable = pageable_copies(trace);
  std::unordered_map<uint32_t, std::optional<size_t>> launches;  // position of the call, by its number
  for (const Activity& activity : trace.activities) {
    if (activity.kind != Activity::Kind::api_call) launches.try_emplace(activity.launch);
  }
  StepTimeline timeline;
  timeline.steps = std::move(steps);
  for (const Activity& call : trace.activities) {
    if (call.kind != Activity::Kind::api_call) continue;
    if (is_wait(call, pageable.contains(call.launch))) timeline.waits.push_back({call.start, call.end});
    if (!is_launch(call, launches)) continue;
    launches[call.launch] = timeline.launches.size();
    timeline.launches.push_back({call.start, call.end});
  }
  for (const Activity& work : trace.activities) {
    if (work.kind == Activity::Kind::api_call) continue;
    timeline.work.push_back({{work.start, work.end}, launches[work.launch]});
  }
  return timeline;
}

}  // namespace sinter::frontend
