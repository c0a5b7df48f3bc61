#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

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

/// Eager alone in its process: what its first call costs.
Json eager_cold(const TargetOptions& options, const Target& target) {
  try {
    return {{"eager_cold_s", bench::seconds_of(target.device, [&] { (void)target.forward(target.first); })}};
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

int64_t launches_of(const EntryReport& entry) {
  int64_t launches = 0;
  for (const KernelRecord& kernel : entry.kernels) launches += kernel.launches;
  for (const ExternRecord& call : entry.externs) launches += call.calls;
  return launches;
}

/// What the compiled function's first call costs with the kernel cache as it is.
Json warm_start(const TargetOptions& options, const Target& target) {
  auto fast = sinter::compile(target.forward, compile_options(options, target));
  return {{"warm_s", bench::seconds_of(target.device, [&] { (void)fast(target.first); })}};
}

/// The compiled function in a fresh process: first call, verified call, then everything that needs it warm.
Json compiled_row(const TargetOptions& options, const Target& target, double budget) {
  const at::Device device = target.device;
  const auto inputs = bench::rotated_inputs(target.first, bench::cache_bytes(device));
  auto fast = sinter::compile(target.forward, compile_options(options, target));
  auto eager_call = [&](int64_t i) { (void)target.forward(inputs[static_cast<size_t>(i) % inputs.size()]); };
  auto fast_call = [&](int64_t i) { (void)fast(inputs[static_cast<size_t>(i) % inputs.size()]); };
  auto once = [&](const bench::Call& call) { return [&call] { call(0); }; };
  const bench::Call eager = eager_call;
  const bench::Call compiled = fast_call;

  Json row;
  row["cold_s"] = bench::seconds_of(device, once(compiled));
  row["verify_s"] = bench::seconds_of(device, once(compiled));
  row["first_replay_s"] = bench::seconds_of(device, once(compiled));
  row["accuracy"] = accuracy_json(judge(target, fast(inputs.front()), inputs.front()));
  // Calls 5 to 7 of the entry: none of them is captured again.
  row["peak_bytes"] = bench::peak_bytes(device, once(compiled));
  row["kernel_trace"] = traced(device, once(compiled));
  row["eager_peak_bytes"] = bench::peak_bytes(device, once(eager));
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
  row["launches"] = report.entries.empty() ? 0 : launches_of(report.entries.front());
  row["eager_launches"] = report.entries.empty() ? 0 : report.entries.front().captured_calls;
  row["report_text"] = report.text();
  row["report"] = Json::parse(report.json());
  return row;
}

Json measured(const TargetOptions& options, const Target& target, const std::string& kind, double budget) {
  if (kind == "eager") return eager_cold(options, target);
  if (kind == "warm") return warm_start(options, target);
  if (kind == "kernels") return {{"traced", kernels_of_one_call(options, target)}};
  return compiled_row(options, target, budget);
}

}  // namespace

int bench_child(const TargetOptions& options, const std::string& kind, double budget, const std::string& file) {
  const at::NoGradGuard no_grad;
  const Target target = make_target(options);
  Json row = measured(options, target, kind, budget);
  row["shape"] = target.shape();
  row["dtype"] = target.dtype();
  row["device"] = target.device.str();
  write_file(file, row.dump());
  return 0;
}

}  // namespace sinter::command
