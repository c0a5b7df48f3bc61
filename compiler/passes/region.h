#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

/// One fused region in the making: its limits, and its body.
namespace sinter::passes {

inline constexpr size_t max_region_values = 64;
inline constexpr size_t max_region_params = 24;
struct RegionLimits {
  size_t values = max_region_values;
  size_t params = max_region_params;
};
/// Operands of a join whose every point asks for each of them in turn. A longer one is a kernel only where that
/// computes all of them and stores each in its place; else a call.
inline constexpr size_t most_joined_at_points = 48;

struct RegionBody {
  std::shared_ptr<const ir::Graph> body;
  std::vector<ir::ValueId> args;  ///< values of the graph around it
  std::string name;               ///< "fused_mul_erf_add_mul"
  ir::Scope scope;                ///< distinct module paths and sources of the members
};

/// The distinct module paths and sources of nodes that become one.
[[nodiscard]] ir::Scope joined_scope(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes);

/// The region's body: `members` in execution order.
[[nodiscard]] RegionBody make_body(const ir::Graph& graph, const std::vector<ir::NodeId>& members,
                                   const std::vector<ir::ValueId>& outputs);

}  // namespace sinter::passes
