#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Products of ATen become `sinter::product`, and with those that are it already share the time that measuring the
/// library's ways to compute them may take (PassContext::measuring_seconds). Needs and gives: fused. On CUDA, for
/// halves under Numerics::fast, as ways differ in the order of their sums.
PassResult measured_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
