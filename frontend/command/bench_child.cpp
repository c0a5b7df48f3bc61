#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/measure/accuracy.h"
#include "bench/measure/kernel_trace.h"
#include "bench/measure/memory.h"
#include "bench/measure/timer.h"
#include "compiler/support/errors.h"
#include "frontend/command/bench_kernels.h"
#include "frontend/command/commands.h"

namespace sinter::command {
namespace {

using Json = nlohmann::json;

Json to_json(const bench::Timing& timing) {
  return {{"median", timing.median},
          {"q1", timing.first_quartile},
          {"q3", timing.third_quartile},
          {"samples", timing.samples}};
}

/// Kernels of one call: what the GPU ran, or nothing on the CPU.
Json traced(at::Device device, const std::function<void()>& call) {
  if (!device.is_cuda()) return nullptr;
  const auto kernels = bench::trace_kernels(call);
  if (!kernels) return nullptr;
  Json list = Json::array();
  for (const bench::TracedKernel& kernel : *kernels)
    list.push_back({{"name", kernel.name}, {"us", kernel.microseconds}});
  return list;
}

Json accuracy_json(const Judged& judged) {
  const bench::Accuracy& accuracy = judged.accuracy;
  return {{"reference", judged.reference},
          {"max_error", accuracy.max_error},
          {"rms_error", accuracy.rms_error},
          {"eager_max_error", accuracy.eager_max_error},
          {"eager_rms_error", accuracy.eager_rms_error},
          {"max_allowed", accuracy.max_allowed},
          {"rms_allowed", accuracy.rms_allowed},
          {"ok", accuracy.ok}};
}

/// Calls from the start of a process on that are timed one by one: recording, compiling, recording of graphs, also
/// where the first call makes state (momentum).
constexpr size_t first_calls = 9;

void add(Json& row, const bench::MemoryUse& use) {
  row["device_bytes"] = use.device_bytes;
  row["allocated_bytes"] = use.allocated_bytes;
  row["reserved_bytes"] = use.reserved_bytes;
}

/// The first calls of this process, one by one, each waited for.
std::vector<double> seconds_of_first_calls(at::Device device, const std::function<void()>& call) {
  std::vector<double> seconds;
  while (seconds.size() < first_calls) seconds.push_back(bench::seconds_of(device, call));
  return seconds;
}

/// Eager alone in its process: its first calls and the memory they take.
Json eager_alone(const TargetOptions& options, const Target& target, bench::MemoryMeter& memory) {
  try {
    const auto seconds = seconds_of_first_calls(target.device, [&] { (void)target.forward(target.first); });
    Json row = {{"eager_cold_s", seconds.front()}, {"first_calls_s", seconds}};
    add(row, memory.stop());
    return row;
  } catch (const std::exception&) {
    (void)call(sinter::compile(target.forward, compile_options(options, target)), target.first);  // says where
    throw;
  }
}

Json phases_of(const Report& report) {
  Json phases = Json::object();
  for (const EntryReport& entry : report.entries) {
    for (const PhaseTime& phase : entry.phases) phases[phase.name] = phases.value(phase.name, 0.0) + phase.seconds;
  }
  return phases;
}

/// What compiling took in this process, and what its calls gain.
Json compile_alone(const TargetOptions& options, const Target& target, double budget) {
  auto fast = sinter::compile(target.forward, compile_options(options, target));
  (void)seconds_of_first_calls(target.device, [&] { (void)fast(target.first); });
  const auto eager = bench::steady(target.device, [&](int64_t) { (void)target.forward(target.first); }, budget);
  const auto compiled = bench::steady(target.device, [&](int64_t) { (void)fast(target.first); }, budget);
  Json times = Json::parse(compile_times().json());
  times["measured"] = {
      {"name", target.name + " " + options.mode}, {"eager_ms", eager.median}, {"compiled_ms", compiled.median}};
  return {{"compile_times", std::move(times)}};
}

/// Losses that are no finite number are null: JSON has no word for them.
Json losses_json(const Losses& losses) {
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  return {{"steps", losses.steps},
          {"first", finite(losses.first)},
          {"last", finite(losses.last)},
          {"eager_last", finite(losses.eager_last)},
          {"largest_difference", finite(losses.largest_difference)}};
}

int64_t launches_of(const EntryReport& entry) {
  int64_t launches = 0;
  for (const KernelRecord& kernel : entry.kernels) launches += kernel.launches;
  for (const ExternRecord& call : entry.externs) launches += call.calls;
  return launches;
}

/// What the compiled function's first call costs with the kernel cache as it is.
Json start(const TargetOptions& options, const Target& target) {
  auto fast = sinter::compile(target.forward, compile_options(options, target));
  return {{"cold_s", bench::seconds_of(target.device, [&] { (void)fast(target.first); })}};
}

/// The compiled function in a fresh process: its first calls and the memory they take, then everything that needs it
/// warm.
Json compiled_row(const TargetOptions& options, const Target& target, bench::MemoryMeter& memory, double budget) {
  const at::Device device = target.device;
  auto fast = sinter::compile(target.forward, compile_options(options, target));
  Json row;
  const auto seconds = seconds_of_first_calls(device, [&] { (void)fast(target.first); });
  row["cold_s"] = seconds.front();
  row["first_calls_s"] = seconds;
  add(row, memory.stop());
  row["accuracy"] =
      accuracy_json(options.train ? judge_training(options) : judge(target, fast(target.first), target.first));

  const auto inputs = bench::rotated_inputs(target.first, bench::cache_bytes(device));
  auto eager_call = [&](int64_t i) { (void)target.forward(inputs[static_cast<size_t>(i) % inputs.size()]); };
  auto fast_call = [&](int64_t i) { (void)fast(inputs[static_cast<size_t>(i) % inputs.size()]); };
  auto once = [&](const bench::Call& call) { return [&call] { call(0); }; };
  const bench::Call eager = eager_call;
  const bench::Call compiled = fast_call;
  row["kernel_trace"] = traced(device, once(compiled));
  eager(0);
  row["eager_kernel_trace"] = traced(device, once(eager));
  row["eager"] = to_json(bench::steady(device, eager, budget));
  row["steady"] = to_json(bench::steady(device, compiled, budget));
  row["eager_latency"] = to_json(bench::latency(device, eager, budget / 2));
  row["latency"] = to_json(bench::latency(device, compiled, budget / 2));
  row["unsynchronised"] = to_json(bench::unsynchronised(device, compiled));

  const Report report = fast.report();
  int64_t breaks = 0;
  for (const EntryReport& entry : report.entries) breaks += static_cast<int64_t>(entry.breaks.size());
  row["phases"] = phases_of(report);
  row["breaks"] = breaks;
  row["launches"] = report.entries.empty() ? 0 : launches_of(report.entries.back());
  row["eager_launches"] = report.entries.empty() ? 0 : report.entries.back().captured_calls;
  row["report_text"] = report.text();
  row["report"] = Json::parse(report.json());
  return row;
}

Json measured(const TargetOptions& options, const Target& target, bench::MemoryMeter& memory,
              const ChildOptions& child) {
  if (child.kind == "eager") return eager_alone(options, target, memory);
  if (child.kind == "start") return start(options, target);
  if (child.kind == "compile") return compile_alone(options, target, child.budget);
  if (child.kind == "kernels") return {{"traced", kernels_of_one_call(options, target)}};
  if (child.kind == "losses") return {{"losses", losses_json(losses_over_steps(options, child.losses))}};
  return compiled_row(options, target, memory, child.budget);
}

}  // namespace

int bench_child(const TargetOptions& options, const ChildOptions& child, const std::string& file) {
  const at::AutoGradMode grad(options.train);
  bench::MemoryMeter memory(parse_device(options.device));
  const Target target = make_target(options);
  Json row = measured(options, target, memory, child);
  row["shape"] = target.shape();
  row["dtype"] = target.dtype();
  row["device"] = target.device.str();
  write_file(file, row.dump());
  return 0;
}

}  // namespace sinter::command
