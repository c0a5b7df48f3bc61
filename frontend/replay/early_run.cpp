#include "frontend/replay/early_run.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <map>
#include <string>

#include "compiler/passes/aten.h"
#include "frontend/replay/compiled_path.h"

namespace sinter::frontend {
namespace {

bool may_refuse(const std::string& op) { return passes::refuses_by_name(op, ir::Device::Kind::cpu); }

/// Steps that call an operator which may refuse its data, by operator.
std::map<std::string, std::vector<uint32_t>> refusing(std::span<const PathNode* const> steps) {
  std::map<std::string, std::vector<uint32_t>> times;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    const std::string& name = steps[i]->step.facts->name;
    if (may_refuse(name)) times[std::string(passes::base_name(name))].push_back(i);
  }
  return times;
}

/// By call of the plan. A pass may have left some of the program's calls out: then each waits for the last of them.
std::vector<uint32_t> times_of_calls(const Plan& plan, std::span<const PathNode* const> steps) {
  const auto known = refusing(steps);
  std::map<std::string, std::vector<uint32_t>> calls;
  for (const sinter::Step& step : plan.steps) {
    const auto* run = std::get_if<RunCall>(&step);
    if (run == nullptr || !may_refuse(plan.calls[run->call].op)) continue;
    calls[std::string(passes::base_name(plan.calls[run->call].op))].push_back(run->call);
  }
  std::vector<uint32_t> times(plan.calls.size(), 0);
  for (const auto& [name, those] : calls) {
    const auto found = known.find(name);
    for (size_t i = 0; i < those.size(); ++i) {
      const bool known_by_order = found != known.end() && found->second.size() == those.size();
      times[those[i]] = known_by_order ? found->second[i] : static_cast<uint32_t>(steps.size());
    }
  }
  return times;
}

}  // namespace

runtime::Arrivals arrivals_of(const Plan& plan, std::span<const PathInput> inputs,
                              std::span<const PathNode* const> steps) {
  if (steps.size() < runtime::fewest_steps_for_parts) return {};
  if (!std::ranges::all_of(inputs, [](const PathInput& input) { return input.value.valid(); })) return {};
  runtime::Arrivals arrivals;
  arrivals.end = static_cast<uint32_t>(steps.size());
  for (const PathInput& input : inputs) arrivals.inputs.push_back(input.step);
  arrivals.calls = times_of_calls(plan, steps);
  return arrivals;
}

EarlyRun::EarlyRun(std::shared_ptr<CompiledPath> path)
    : path_(std::move(path)), frame_(path_->frames_, *path_->host_), due_(path_->executable_->due(0)) {
  frame_->bind_states(path_->states_);
}

EarlyRun::~EarlyRun() {
  if (owns_parts_) path_->executable_->drop();
}

void EarlyRun::start(const TensorTable& table, uint32_t steps) {
  const c10::OptionalDeviceGuard device(device_to_set(*path_->plan_));
  const auto& inputs = path_->inputs_;
  for (; bound_ < inputs.size() && inputs[bound_].step < steps; ++bound_) {
    frame_->bind_input(bound_, memory_of(inputs[bound_], table));
  }
  while (due_ && *due_ < steps) {
    owns_parts_ = false;
    owns_parts_ = path_->executable_->start(started_, *frame_);
    if (!owns_parts_) {
      started_ = 0;
      due_.reset();
      return;
    }
    due_ = path_->executable_->due(++started_);
  }
}

}  // namespace sinter::frontend
