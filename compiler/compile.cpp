#include "compiler/compile.h"

#include <algorithm>
#include <chrono>
#include <variant>

#include "compiler/generate.h"
#include "compiler/ir/print.h"
#include "compiler/passes/live_bytes.h"
#include "compiler/passes/pipeline.h"
#include "compiler/passes/plan_memory.h"
#include "compiler/plan_print.h"
#include "compiler/support/compile_phases.h"
#include "compiler/support/dump.h"

namespace sinter {
namespace {

using Clock = std::chrono::steady_clock;

/// Runs `work` as one phase, gives what it gave.
template <class Work>
auto timed(EntryReport& report, CompileObserver* observer, std::string_view phase, Work&& work) {
  const auto begin = Clock::now();
  auto result = work();
  end_phase(report, observer, phase, begin);
  return result;
}

/// What every call of the function runs, without what is computed once.
void record_externs(const Plan& plan, EntryReport& report) {
  for (const Step& step : plan.steps) {
    const auto* run = std::get_if<RunCall>(&step);
    if (run == nullptr) continue;
    const ExternCall& call = plan.calls.at(run->call);
    auto known = std::find_if(report.externs.begin(), report.externs.end(),
                              [&](const ExternRecord& record) { return record.op == call.op; });
    if (known == report.externs.end()) known = report.externs.insert(known, {call.op, 0, {}});
    ++known->calls;
    known->modules.push_back(call.module);
  }
}

}  // namespace

Plan compile(ir::Graph graph, const CompileOptions& options, EntryReport& report) {
  const Dump& dump = Dump::environment();
  const passes::PassContext context{.device = options.device,
                                    .numerics = options.numerics,
                                    .freeze = options.freeze,
                                    .eager_peak_bytes = passes::eager_peak_bytes(graph),
                                    .generic_sizes = options.generic_sizes,
                                    .measuring_seconds = options.measuring_seconds};
  if (dump.wants("after:capture")) dump.write("after:capture", graph.name, ir::print(graph));

  passes::run_pipeline(graph, context,
                       [&](const passes::PipelineRow& row, const ir::Graph& after, Clock::time_point begin) {
                         end_phase(report, options.observer, phase_of_pass(row.name), begin);
                         const std::string item = "after:" + std::string(row.name);
                         if (dump.wants(item)) dump.write(item, after.name, ir::print(after));
                       });
  auto planned = timed(report, options.observer, phase_of_pass("plan_memory"),
                       [&] { return passes::plan_memory(graph, context); });
  report.memory.owners = std::move(planned.owners);
  Plan plan =
      timed(report, options.observer, "codegen", [&] { return generate_kernels(graph, std::move(planned), options); });

  if (dump.wants("plan")) dump.write("plan", plan.name, print(plan));
  record_externs(plan, report);
  report.memory.arena_bytes = plan.arena_bytes;
  return plan;
}

}  // namespace sinter
