#include "frontend/profile/step_places.h"

#include <algorithm>

#include "frontend/profile/operator_sums.h"

namespace sinter::frontend {
namespace {

constexpr size_t farthest = 64;  ///< operators that may be passed over at once

}  // namespace

StatedPlace planned_place(const ModeProfile& profile, const ProfiledOperator& op) {
  StatedPlace place;
  if (op.module >= 0) place.module = profile.modules[static_cast<size_t>(op.module)].path;
  place.line = std::string(name(op.phase)) + " " + op.line;
  return place;
}

PlannedLine read_planned(const std::string& source) {
  for (const Phase phase : all_phases) {
    const std::string prefix = std::string(name(phase)) + " ";
    if (source.starts_with(prefix)) return {phase, source.substr(prefix.size())};
  }
  return {std::nullopt, source};
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
