#pragma once

#include <c10/util/ArrayRef.h>

#include <string>
#include <vector>

#include "compiler/ir/graph.h"

/// What everybody who builds a graph of recorded calls needs.
namespace sinter::frontend {

/// A name the IR's text form takes: letters, digits, underscores.
[[nodiscard]] std::string identifier(std::string text);

/// The operator's own name: "relu" of "aten::relu_", "add" of "aten::add.Tensor".
[[nodiscard]] std::string value_hint(const std::string& op);

/// Arguments of aten::as_strided that give this layout; `offset` counts from the beginning of the storage.
[[nodiscard]] std::vector<ir::Arg> as_strided_args(ir::ValueId base, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                                                   int64_t offset);

/// The device of most values, the first one of those that tie; the graph's own where it has none.
[[nodiscard]] ir::Device device_of_most_values(const ir::Graph& graph);

}  // namespace sinter::frontend
