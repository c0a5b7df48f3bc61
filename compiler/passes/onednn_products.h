#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// On the CPU, products of f32 matrices go to oneDNN where it is faster there than the BLAS that `aten::mm` calls
/// (DeviceInfo::onednn_products), with the bias and an activation behind them, which cost nothing as it stores. Weights
/// that are computed once are kept in the library's own layout. For numerics = fast: sums have another order.
PassResult onednn_products(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
