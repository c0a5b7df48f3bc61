#include "frontend/profile/step_places.h"

#include <algorithm>
#include <string_view>

#include "frontend/profile/operator_sums.h"

namespace sinter::frontend {
namespace {

constexpr size_t farthest = 64;  ///< operators that may be passed over at once

/// These stand before the phase: the model's own path is empty, too.
constexpr std::string_view of_loss = "~~";
constexpr std::string_view without_module = "~";

std::string_view mark_of(const ProfiledOperator& op) {
  if (op.module >= 0) return {};
  return op.how == Attribution::loss ? of_loss : without_module;
}

}  // namespace

StatedPlace planned_place(const ModeProfile& profile, const ProfiledOperator& op) {
  StatedPlace place;
  if (op.module >= 0) place.module = profile.modules[static_cast<size_t>(op.module)].path;
  place.line = std::string(mark_of(op)) + name(op.phase) + " " + op.line;
  return place;
}

PlannedLine read_planned(const std::string& source) {
  PlannedLine planned{.phase = std::nullopt, .line = source};
  planned.of_loss = source.starts_with(of_loss);
  planned.in_module = !source.starts_with(without_module);
  const std::string text = source.substr(std::min(source.find_first_not_of(without_module), source.size()));
  for (const Phase phase : all_phases) {
    const std::string prefix = std::string(name(phase)) + " ";
    if (!text.starts_with(prefix)) continue;
    planned.phase = phase;
    planned.line = text.substr(prefix.size());
    return planned;
  }
  return {.phase = std::nullopt, .line = source};
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
