#pragma once

#include <string>
#include <vector>

#include "frontend/profile/module_table.h"
#include "sinter/profile.h"

namespace sinter::frontend {

/// The modules with the time of their own operators, milliseconds a step. In the table's order, so that positions are
/// the table's.
[[nodiscard]] std::vector<ProfiledModule> module_times(const ModuleTable& modules, const ModeProfile& profile);

/// Tells modules what of their forward pass is saved, by eager operators and by compiled segments. Needs: the profile's
/// memory and segments.
void add_saved(ModeProfile& profile);

/// A line of a folded tree: one module, or several of one build beside each other.
struct FoldedModule {
  std::string name;  ///< "encoder_layer_0..11"; the last part of the path
  std::string path;  ///< of the first of them
  std::string kind;
  int64_t depth = 0;
  int64_t repeats = 1;
  double forward = 0;  ///< milliseconds a step; parts included, all repeats together
  double backward = 0;
  double optimizer = 0;
  double compiled = 0;
  int64_t operators = 0;
  int64_t launches = 0;
  int64_t saved = 0;  ///< bytes

  [[nodiscard]] double total() const { return forward + backward + optimizer + compiled; }
};

/// The tree, a module before its parts, parts sorted by time. Siblings of one class whose parts are alike are one line.
[[nodiscard]] std::vector<FoldedModule> folded(const std::vector<ProfiledModule>& modules);

}  // namespace sinter::frontend
