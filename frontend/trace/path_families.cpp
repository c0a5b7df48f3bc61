#include "frontend/trace/path_families.h"

#include <algorithm>

#include "frontend/trace/path_graph.h"

namespace sinter::frontend {

void PathFamilies::add(PathNode& end) {
  const size_t operators = PathHash::of(steps_to(end)).operators;
  const std::lock_guard lock(mutex_);
  if (!groups_.contains(operators) && groups_.size() >= max_groups) return;
  Group& group = groups_[operators];
  if (!group.refusal.empty()) return;
  if (std::ranges::any_of(steps_of(end), [](const Step* step) { return step->draw.has_value(); })) {
    group.refusal = "how far random numbers are drawn is known of recorded sizes alone";
    return;
  }
  if (group.family != nullptr) {
    if (auto family = group.family->with(steps_of(end))) {
      group.family = std::move(family);
      return;
    }
  }
  if (group.ends.size() >= max_samples) {
    group.refusal = "recordings for further sizes did otherwise than thought";
    group.family.reset();
    return;
  }
  group.ends.push_back(&end);
  if (group.ends.size() > 1) solve(group);
}

/// What 0 and 1 do is a program of its own: such paths are left out.
void PathFamilies::solve(Group& group) {
  group.family.reset();
  while (group.ends.size() > 1) {
    std::vector<PathSteps> samples;
    for (const PathNode* end : group.ends) samples.push_back(steps_of(*end));
    auto solved = PathFamily::solve(std::move(samples));
    if (auto* family = std::get_if<std::shared_ptr<const PathFamily>>(&solved)) {
      group.family = std::move(*family);
      return;
    }
    const auto& [reason, sample] = std::get<PathFamily::Unsolved>(solved);
    if (!sample) {
      group.refusal = reason;
      return;
    }
    group.ends.erase(group.ends.begin() + static_cast<std::ptrdiff_t>(*sample));
  }
}

bool PathFamilies::grow(PathTree& tree, PathNode& at, const c10::OperatorHandle& op,
                        std::span<const TraceValue* const> taken, std::span<const int64_t> vouched) {
  const std::lock_guard lock(mutex_);
  const PathSteps before = steps_of(at);
  for (const auto& [operators, group] : groups_) {
    if (group.family == nullptr) continue;
    auto steps = group.family->next(before, op, taken, vouched);
    if (steps.empty()) continue;
    PathNode* node = &at;
    for (size_t i = 0; i < steps.size(); ++i) {
      const size_t values = node->values + steps[i].taken.size() + steps[i].made.size();
      node = &tree.add(*node, std::move(steps[i])).node;
      // Recorded as a call that gives what it was given, as a slice of everything: those behind it number values alike.
      if (node->values != values) return true;
      node->live.fetch_or(group.family->live(before.size() + i), std::memory_order_relaxed);
    }
    if (node->depth == group.family->length()) finish(*node, group);
    return true;
  }
  return false;
}

/// What ends here has been recorded for other sizes.
void PathFamilies::finish(PathNode& end, const Group& group) {
  for (PathNode* known : group.ends) {
    std::vector<TraceMemoryId> escaped;
    std::vector<std::string> reasons;
    {
      const std::lock_guard lock(known->ending.mutex);
      escaped = known->ending.escaped;
      reasons = known->ending.reasons;
    }
    const std::lock_guard lock(end.ending.mutex);
    for (const std::string& reason : reasons) end.ending.add(escaped, reason);
    end.ending.visits = std::max<int64_t>(end.ending.visits, 1);
    end.ending.instance = true;
  }
}

std::vector<std::string> PathFamilies::sizes(size_t operators) const {
  const std::lock_guard lock(mutex_);
  const auto group = groups_.find(operators);
  const bool known = group != groups_.end() && group->second.family != nullptr;
  return known ? group->second.family->describe() : std::vector<std::string>();
}

std::vector<std::string> PathFamilies::refusals() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& [operators, group] : groups_) {
    const bool known = std::ranges::find(lines, group.refusal) != lines.end();
    if (!group.refusal.empty() && !known) lines.push_back(group.refusal);
  }
  return lines;
}

}  // namespace sinter::frontend
