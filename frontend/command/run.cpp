#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "bench/measure/accuracy.h"
#include "bench/models/model.h"
#include "frontend/command/commands.h"

namespace sinter::command {
namespace {

struct CheckedRun {
  Report report;
  Judged worst;
  Tensors inputs;      ///< of the last call
  c10::IValue result;  ///< of the last call
};

/// Eager, wider and compiled results of the same inputs, `calls` times; keeps the least accurate call. Training steps
/// are judged in instances of their own.
CheckedRun compile_and_check(const RunOptions& options, const Target& target) {
  auto compiled = sinter::compile(target.forward, compile_options(options.target, target));
  CheckedRun outcome;
  for (int64_t i = 0; i < options.calls; ++i) {
    outcome.inputs = i == 0 ? target.first : target.draw();
    outcome.result = call(compiled, outcome.inputs);
    if (options.target.train) continue;  // another step would start elsewhere
    const Judged judged = judge(target, outcome.result, outcome.inputs);
    const bench::Accuracy& accuracy = judged.accuracy;
    if (i == 0 || !accuracy.ok || accuracy.max_error > outcome.worst.accuracy.max_error) outcome.worst = judged;
    if (!accuracy.ok) break;
  }
  outcome.report = compiled.report();
  if (options.target.train) outcome.worst = judge_training(options.target);
  return outcome;
}

int verdict(const Judged& judged) {
  const bench::Accuracy& accuracy = judged.accuracy;
  fmt::print("{} against {}  largest error {:.3g} (eager {:.3g}, allowed {:.3g})  ",
             accuracy.ok ? "check passed" : "check FAILED", judged.reference, accuracy.max_error,
             accuracy.eager_max_error, accuracy.max_allowed);
  fmt::print("rms {:.3g} (eager {:.3g}, allowed {:.3g})\n", accuracy.rms_error, accuracy.eager_rms_error,
             accuracy.rms_allowed);
  return accuracy.ok ? 0 : 1;
}

void print_entry(const EntryReport& entry) {
  fmt::print("{}  {}  {}\n", entry.signature, entry.device, entry.compiled ? "compiled" : "runs as eager");
  for (const GraphBreak& found : entry.breaks) {
    fmt::print("break  {}  {}  {}\n       {}\n       try: {}\n", name(found.code), found.op, found.where, found.reason,
               found.hint);
  }
  for (const KernelRecord& kernel : entry.kernels) {
    fmt::print("kernel {} x{}  {}\n", kernel.name, kernel.launches, fmt::join(kernel.modules, ", "));
  }
  for (const ExternRecord& call : entry.externs) fmt::print("extern {} x{}\n", call.op, call.calls);
}

}  // namespace

int run(const RunOptions& options) {
  check_writable(options.json);
  check_writable(options.out);
  const at::AutoGradMode grad(options.target.train);
  const Target target = make_target(options.target);
  CheckedRun outcome = compile_and_check(options, target);
  std::cout << outcome.report;
  if (!options.json.empty()) write_file(options.json, outcome.report.json());
  if (!options.out.empty()) write_value(options.out, outcome.result);
  const int code = verdict(outcome.worst);
  if (options.expected.empty()) return code;
  return std::max(code, check_against(options.expected, target, outcome.result, outcome.inputs));
}

int explain(const RunOptions& options) {
  check_writable(options.json);
  const at::AutoGradMode grad(options.target.train);
  const CheckedRun outcome = compile_and_check(options, make_target(options.target));
  for (const EntryReport& entry : outcome.report.entries) print_entry(entry);
  for (const std::string& note : outcome.report.notes) fmt::print("note   {}\n", note);
  if (!options.json.empty()) write_file(options.json, outcome.report.json());
  return verdict(outcome.worst);
}

int list_models() {
  for (const bench::ModelRow& row : bench::models()) {
    std::string settings;
    for (const bench::Setting& setting : row.settings) settings += fmt::format("  {}={}", setting.name, setting.value);
    fmt::print("{:<12} {:<28} {}{}\n", row.name, fmt::join(row.inputs, " "), row.summary, settings);
  }
  return 0;
}

}  // namespace sinter::command
