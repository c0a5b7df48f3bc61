#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::ir {

/// What a graph may hold, and what it must not (docs/ir.md).
enum class Stage : uint8_t {
  captured,    ///< inputs, state and ATen calls, with aliases and mutations
  functional,  ///< primitives, views and pure calls; no aliases, no mutations
  fused,       ///< as functional, and every primitive stands inside a fused node
};

[[nodiscard]] std::string_view name(Stage stage);

/// True when two elements of a tensor of this type have the same place in memory. Static types only.
[[nodiscard]] bool overlaps_itself(const Type& type);

/// Everything that is wrong with a graph, in words; empty when it is well formed for the stage. Values are named as
/// `print` names them.
[[nodiscard]] std::vector<std::string> verify(const Graph& graph, Stage stage);

/// Throws InternalError naming the pass that left the graph, with every problem, where `verify` finds any.
void require(const Graph& graph, Stage stage, std::string_view pass);

}  // namespace sinter::ir
