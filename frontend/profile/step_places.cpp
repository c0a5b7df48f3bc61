#include "frontend/profile/step_places.h"

#include <algorithm>
#include <string_view>

#include "frontend/profile/operator_sums.h"

namespace sinter::frontend {
namespace {

constexpr size_t farthest = 64;  ///< operators that may be passed over at once

constexpr std::string_view without_module = "~";  ///< stands before the phase: the model's own path is empty, too

}  // namespace

StatedPlace planned_place(const ModeProfile& profile, const ProfiledOperator& op) {
  StatedPlace place;
  if (op.module >= 0) place.module = profile.modules[static_cast<size_t>(op.module)].path;
  place.line = std::string(op.module >= 0 ? "" : without_module) + name(op.phase) + " " + op.line;
  return place;
}

PlannedLine read_planned(const std::string& source) {
  const bool in_module = !source.starts_with(without_module);
  const std::string text = in_module ? source : source.substr(without_module.size());
  for (const Phase phase : all_phases) {
    const std::string prefix = std::string(name(phase)) + " ";
    if (text.starts_with(prefix)) return {phase, text.substr(prefix.size()), in_module};
  }
  return {std::nullopt, source, false};
}

StepPlaces::StepPlaces(const ModeProfile& profile) {
  for (const ProfiledOperator& op : profile.operators) {
    if (op.step == profile.steps - 1) places_.push_back({op.op, planned_place(profile, op)});
  }
}

const StatedPlace* StepPlaces::next(const std::string& name) {
  const size_t end = std::min(places_.size(), next_ + farthest);
  for (size_t i = next_; i < end; ++i) {
    if (places_[i].name != name) continue;
    next_ = i + 1;
    return &places_[i].place;
  }
  return nullptr;
}

}  // namespace sinter::frontend
