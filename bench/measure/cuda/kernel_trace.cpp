#include "bench/measure/kernel_trace.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <mutex>

#include "bench/measure/operator_calls.h"
#include "runtime/activity.h"
#include "runtime/busy_time.h"

namespace sinter::bench {
namespace {

using runtime::Activity;
using runtime::ActivityDetail;

/// What ran on the GPU while `call` did. Nothing where it cannot be recorded.
std::optional<std::vector<Activity>> device_work(ActivityDetail detail, const std::function<void()>& call) {
  cudaDeviceSynchronize();
  auto recorded = runtime::record_activities(detail, [&] {
    call();
    cudaDeviceSynchronize();
  });
  if (!recorded.trace) return std::nullopt;
  std::vector<Activity>& work = recorded.trace->activities;
  std::erase_if(work, [](const Activity& activity) { return activity.kind == Activity::Kind::api_call; });
  return std::move(work);
}

std::vector<TracedKernel> traced(const std::vector<Activity>& work) {
  std::vector<runtime::Interval> intervals;
  for (const Activity& activity : work) intervals.push_back({activity.start, activity.end, activity.stream});
  const std::vector<double> busy = runtime::busy_microseconds(intervals);
  std::vector<TracedKernel> kernels;
  for (size_t i = 0; i < work.size(); ++i) kernels.push_back({work[i].name, busy[i], "", 0});
  return kernels;
}

}  // namespace

std::optional<std::vector<TracedKernel>> trace_kernels(const std::function<void()>& call) {
  const auto work = device_work(ActivityDetail::kernels, call);
  return work ? std::optional(traced(*work)) : std::nullopt;
}

std::optional<std::vector<TracedKernel>> trace_operator_kernels(const std::function<void()>& call) {
  std::mutex several_threads;
  std::vector<std::string> names;  // of the operator calls, in order
  const auto begin = [&](std::string name) {
    const std::scoped_lock lock(several_threads);
    runtime::push_activity_caller(names.size());
    names.push_back(std::move(name));
  };
  const auto work =
      device_work(ActivityDetail::callers, [&] { watch_operator_calls(begin, runtime::pop_activity_caller, call); });
  if (!work) return std::nullopt;
  std::vector<TracedKernel> kernels = traced(*work);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto caller = (*work)[i].caller;
    if (!caller || *caller >= names.size()) continue;
    const auto position = names.begin() + static_cast<std::ptrdiff_t>(*caller);
    kernels[i].op = *position;
    kernels[i].call = std::count(names.begin(), position, kernels[i].op);
  }
  return kernels;
}

}  // namespace sinter::bench
