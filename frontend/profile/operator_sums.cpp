#include "frontend/profile/operator_sums.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "frontend/profile/hints.h"

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

std::optional<double> DeviceLimits::least_time(const ProfiledOperator& op) const {
  if (op.bytes < 0 || bandwidth <= 0) return std::nullopt;
  const double moving = static_cast<double>(op.bytes) / bandwidth;
  if (op.flops <= 0) return 1e6 * moving;
  const auto peak = std::ranges::find(peaks, op.dtype, &ArithmeticPeak::dtype);
  if (peak == peaks.end() || peak->flops <= 0) return std::nullopt;
  return 1e6 * std::max(moving, op.flops / peak->flops);
}

namespace frontend {

namespace {

void add_work(const ModeProfile& profile, const ProfiledOperator& op, double steps, OperatorSum& sum) {
  const auto least = profile.limits.least_time(op);
  sum.work_known &= op.bytes >= 0;
  sum.least = sum.least && least ? std::optional(*sum.least + *least / 1e3 / steps) : std::nullopt;
  sum.bytes += op.bytes < 0 ? 0 : static_cast<double>(op.bytes) / steps;
  sum.flops += op.flops / steps;
  if (!op.dtype.empty()) sum.dtype = op.dtype;
}

}  // namespace

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
    if (sum.calls++ == 0) sum.least = 0;
    sum.launches += op.launches;
    add_work(profile, op, steps, sum);
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

std::vector<OperatorSum> slow_sums(const ModeProfile& profile) {
  constexpr double least_share = 0.01;
  if (!profile.deterministic) return {};
  std::vector<OperatorSum> sums = operator_sums(profile);
  double all = 0;
  for (const OperatorSum& sum : sums) all += sum.milliseconds;
  std::erase_if(sums, [all](const OperatorSum& sum) {
    return sum.milliseconds < least_share * all || slow_hint_for(sum.op).empty();
  });
  return sums;
}

std::vector<OperatorSum> sums_by_gain(std::vector<OperatorSum> sums) {
  std::erase_if(sums, [](const OperatorSum& sum) { return !sum.least; });
  std::ranges::stable_sort(sums, std::greater(), &OperatorSum::gain);
  return sums;
}

}  // namespace frontend

}  // namespace sinter
