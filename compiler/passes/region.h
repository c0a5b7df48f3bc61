#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/view_source.h"

/// One fused region in the making: its limits, whether its reads have indices, and its body.
namespace sinter::passes {

inline constexpr size_t max_region_instructions = 64;
inline constexpr size_t max_region_params = 24;

/// An operand of a primitive as its region sees it: memory of `source.base` looked at as `type`. A host scalar (a 0-dim
/// CPU tensor beside a CUDA region) is taken as it is, never through its views.
[[nodiscard]] ir::ViewSource region_operand(const ir::Graph& graph, ir::ValueId operand);

/// True when a kernel can compute all `outputs` (values of `members`, all of the same static sizes) in one loop nest
/// over their sizes, within the limits above.
[[nodiscard]] bool can_lower(const ir::Graph& graph, const std::vector<ir::NodeId>& members,
                             const std::vector<ir::ValueId>& outputs);

struct RegionBody {
  std::shared_ptr<const ir::Graph> body;
  std::vector<ir::ValueId> args;  ///< values of the graph around it
  std::string name;               ///< "fused_mul_erf_add_mul"
  ir::Scope scope;                ///< distinct module paths and sources of the members
};

/// The region's body: `members` in execution order.
[[nodiscard]] RegionBody make_body(const ir::Graph& graph, const std::vector<ir::NodeId>& members,
                                   const std::vector<ir::ValueId>& outputs);

}  // namespace sinter::passes
