#pragma once

#include <span>
#include <vector>

#include "frontend/profile/module_table.h"
#include "frontend/torch/member_calls.h"
#include "sinter/profile.h"

namespace sinter::frontend {

/// What is known of an operator outside of backward passes.
struct SeenOperator {
  ModuleIndex owner = no_module;       ///< of a parameter or buffer among its arguments
  ModuleIndex stated = no_module;      ///< by a model file
  std::vector<MemberCall> calls = {};  ///< that it was called from, outermost first
};

struct FoundModule {
  ModuleIndex module = no_module;
  Attribution how = Attribution::none;

  bool operator==(const FoundModule&) const = default;
};

/// The module of each operator that one thread called in a step, in their order.
///
/// What a file states, and what a parameter says, holds. Else the innermost member function of a module's class that
/// the operator was called from names the class; where several modules have it (layers of a transformer), the one next
/// to what was called before or after it is meant: before it, if the function has moved on since, else after it.
/// Without such a function, the operator belongs to the module that holds what stands before and after it.
[[nodiscard]] std::vector<FoundModule> find_modules(const ModuleTable& modules,
                                                    std::span<const SeenOperator> operators);

}  // namespace sinter::frontend
