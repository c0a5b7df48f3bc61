#pragma once

#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// By value: true where a jump depends on it, through any arithmetic, in this graph's kernels: a comparison, a
/// rounding, a conversion to an integer. A last bit more or less can then change a result by a whole step, so such
/// values are computed and rounded as eager computes and rounds them. What library calls make of a value does not
/// count.
[[nodiscard]] std::vector<bool> deciding_values(const ir::Graph& graph);

/// The same of a fused body; by output, `outputs` says which decide outside of it.
[[nodiscard]] std::vector<bool> deciding_values_of_body(const ir::Graph& body, const std::vector<bool>& outputs);

/// By result of a fused node, whether it decides.
[[nodiscard]] std::vector<bool> deciding_results(const ir::Node& node, const std::vector<bool>& deciding);

}  // namespace sinter::passes
