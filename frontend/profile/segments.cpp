#include "frontend/profile/segments.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "frontend/profile/step_places.h"

namespace sinter::frontend {
namespace {

/// The model itself has an empty path, and so has what is outside of all modules.
ModuleIndex module_of(const SegmentOwner& owner, const PlannedLine& planned, ModuleTable& modules) {
  return owner.module.empty() && !(planned.phase && planned.in_module) ? no_module : modules.intern(owner.module);
}

std::vector<SegmentMemory> owners_of(const std::vector<SegmentOwner>& owners, ModuleTable& modules) {
  std::map<std::tuple<SegmentOwner::Kind, Phase, ModuleIndex>, SegmentMemory> sums;
  for (const SegmentOwner& owner : owners) {  // the largest first, whose line stands
    const PlannedLine planned = read_planned(owner.source);
    const Phase phase = planned.phase.value_or(Phase::other);
    const ModuleIndex module = module_of(owner, planned, modules);
    SegmentMemory& sum = sums[{owner.kind, phase, module}];
    if (sum.bytes == 0) {
      sum = {.kind = owner.kind, .phase = phase, .module = module, .line = planned.line};
    }
    sum.bytes += owner.bytes;
  }
  std::vector<SegmentMemory> sorted;
  for (auto& [key, sum] : sums) sorted.push_back(std::move(sum));
  std::ranges::stable_sort(sorted, std::greater(), &SegmentMemory::bytes);
  return sorted;
}

}  // namespace

std::vector<ProfiledSegment> segments_of(const Report& report, ModuleTable& modules) {
  std::vector<ProfiledSegment> segments;
  for (const EntryReport& entry : report.entries) {
    if (!entry.compiled || entry.replays == 0) continue;
    segments.push_back({.signature = entry.signature,
                        .arena = entry.memory.arena_bytes,
                        .graphs = entry.graphs,
                        .owners = owners_of(entry.memory.owners, modules)});
  }
  std::ranges::stable_sort(segments, std::greater(), &ProfiledSegment::arena);
  return segments;
}

}  // namespace sinter::frontend
