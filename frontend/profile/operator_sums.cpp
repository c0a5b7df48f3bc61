#include "frontend/profile/operator_sums.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace sinter {

const char* name(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::loss:
      return "loss";
    case Phase::backward:
      return "backward";
    case Phase::optimizer:
      return "optimizer";
    case Phase::compiled:
      return "compiled";
    case Phase::other:
      return "other";
  }
  return "";
}

double ModeProfile::attributed() const {
  double all = 0;
  double known = 0;
  for (const ProfiledOperator& op : operators) {
    all += time_of(op);
    if (op.how != Attribution::none) known += time_of(op);
  }
  return all > 0 ? known / all : 0;
}

double ModeProfile::busy() const {
  double sum = 0;
  for (const ProfiledKernel& kernel : kernels) sum += kernel.time;
  const double traced = 1e3 * traced_step_ms * static_cast<double>(steps);
  return traced > 0 ? std::min(1.0, sum / traced) : 0;
}

namespace frontend {

const char* name(Attribution how) {
  switch (how) {
    case Attribution::none:
      return "none";
    case Attribution::stated:
      return "stated";
    case Attribution::parameter:
      return "parameter";
    case Attribution::stack:
      return "stack";
    case Attribution::between:
      return "between";
    case Attribution::loss:
      return "loss";
  }
  return "";
}

double time_of_phase(const ModeProfile& profile, Phase phase) {
  double sum = 0;
  for (const ProfiledOperator& op : profile.operators) {
    if (op.phase == phase) sum += profile.time_of(op);
  }
  return sum / 1e3 / static_cast<double>(std::max<int64_t>(profile.steps, 1));
}

std::vector<OperatorSum> operator_sums(const ModeProfile& profile) {
  std::map<std::tuple<Phase, std::string, std::string, std::string>, OperatorSum> sums;
  const auto steps = static_cast<double>(std::max<int64_t>(profile.steps, 1));
  for (const ProfiledOperator& op : profile.operators) {
    OperatorSum& sum = sums[{op.phase, op.op, op.autograd, op.line}];
    sum.milliseconds += profile.time_of(op) / 1e3 / steps;
    ++sum.calls;
    if (op.module >= 0 && std::ranges::find(sum.modules, op.module) == sum.modules.end()) {
      sum.modules.push_back(op.module);
    }
  }
  std::vector<OperatorSum> sorted;
  for (auto& [key, sum] : sums) {
    std::tie(sum.phase, sum.op, sum.autograd, sum.line) = key;
    sorted.push_back(std::move(sum));
  }
  std::ranges::stable_sort(sorted, std::greater(), &OperatorSum::milliseconds);
  return sorted;
}

}  // namespace frontend

}  // namespace sinter
