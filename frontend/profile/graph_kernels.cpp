#include "frontend/profile/graph_kernels.h"

#include <algorithm>
#include <map>

#include "frontend/profile/operator_log.h"
#include "runtime/match_names.h"

namespace sinter::frontend {
namespace {

bool is_segment(const ProfiledOperator& op) { return op.op.starts_with(segment_prefix); }

/// Positions of the kernels of a step that operators called, or of those that graphs replayed, as they began.
std::vector<size_t> kernels_of_step(const ModeProfile& profile, int64_t step, bool in_graphs) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < profile.kernels.size(); ++i) {
    const ProfiledKernel& kernel = profile.kernels[i];
    if (kernel.op < 0 || kernel.in_graph != in_graphs) continue;
    if (profile.operators[static_cast<size_t>(kernel.op)].step == step) positions.push_back(i);
  }
  std::ranges::stable_sort(positions, {}, [&](size_t i) { return profile.kernels[i].start; });
  return positions;
}

std::vector<std::string> names_of(const ModeProfile& profile, const std::vector<size_t>& positions) {
  std::vector<std::string> names;
  for (const size_t i : positions) names.push_back(profile.kernels[i].name);
  return names;
}

class GraphAttribution {
 public:
  GraphAttribution(const ModeProfile& direct, ModuleTable& modules, ModeProfile& profile)
      : direct_(direct), modules_(modules), profile_(profile) {}

  void run() {
    const auto known = kernels_of_step(direct_, direct_.steps - 1, false);
    const std::vector<std::string> known_names = names_of(direct_, known);
    for (int64_t step = 0; step < profile_.steps; ++step) {
      added_.clear();
      const auto replayed = kernels_of_step(profile_, step, true);
      const auto partners = runtime::match_names(names_of(profile_, replayed), known_names);
      for (size_t i = 0; i < replayed.size(); ++i) {
        if (partners[i]) give(profile_.kernels[replayed[i]], direct_.kernels[known[*partners[i]]].op, step);
      }
    }
  }

 private:
  /// Moves a kernel from the operator that launched its graph to one of the direct run.
  void give(ProfiledKernel& kernel, int64_t direct_position, int64_t step) {
    if (is_segment(direct_.operators[static_cast<size_t>(direct_position)])) return;
    const auto [known, is_new] = added_.try_emplace(direct_position, std::ssize(profile_.operators));
    if (is_new) profile_.operators.push_back(replayed_operator(direct_position, step, kernel));
    ProfiledOperator& launcher = profile_.operators[static_cast<size_t>(kernel.op)];
    launcher.device -= kernel.time;
    --launcher.launches;
    ProfiledOperator& op = profile_.operators[static_cast<size_t>(known->second)];
    op.device += kernel.time;
    ++op.launches;
    kernel.op = known->second;
  }

  [[nodiscard]] ProfiledOperator replayed_operator(int64_t direct_position, int64_t step,
                                                   const ProfiledKernel& kernel) const {
    ProfiledOperator op = direct_.operators[static_cast<size_t>(direct_position)];
    if (op.module >= 0) op.module = modules_.intern(direct_.modules[static_cast<size_t>(op.module)].path);
    op.step = step;
    op.thread = profile_.operators[static_cast<size_t>(kernel.op)].thread;
    op.start = kernel.start;
    op.host = 0;
    op.device = 0;
    op.launches = 0;
    op.allocated = 0;
    return op;
  }

  const ModeProfile& direct_;
  ModuleTable& modules_;
  ModeProfile& profile_;
  std::map<int64_t, int64_t> added_;  ///< of a step: position in the direct profile to position in this one
};

}  // namespace

void attribute_graphs(const ModeProfile& direct, ModuleTable& modules, ModeProfile& profile) {
  GraphAttribution(direct, modules, profile).run();
}

}  // namespace sinter::frontend
