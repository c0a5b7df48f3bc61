#pragma once

#include <span>

#include <ATen/core/ivalue.h>

#include "compiler/ir/graph.h"

namespace sinter::frontend {

/// True when LibTorch gives every view of a captured graph the sizes, strides and place that the graph says: its
/// operator is called on a tensor without data ("meta") of the type that the graph gives its argument. False where one
/// throws, too. For graphs whose numbers were solved. `opaques` are the trace's. Thread-safe.
[[nodiscard]] bool views_are_as_libtorch_makes_them(const ir::Graph& graph, std::span<const c10::IValue> opaques);

}  // namespace sinter::frontend
