#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// A pure ATen call as a rule sees it. `args` are values of the graph under construction.
struct CallSite {
  std::string_view op;
  std::span<const ir::Arg> args;
  const ir::Type& type;  ///< observed type of the first result
  ir::ScopeId scope;
};

/// Adds nodes that compute the call's first result, with exactly the observed type, in memory of its own. Nothing (and
/// only dead nodes added) where the rule does not hold.
using StructuralRule = std::optional<ir::ValueId> (*)(ir::Graph&, const CallSite&);

/// The rule for an ATen op that is no row of the op table; nullptr when there is none.
[[nodiscard]] StructuralRule structural_rule(std::string_view op);

}  // namespace sinter::passes
