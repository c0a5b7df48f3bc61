#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::ir {

/// The graph as text (docs/ir.md). `parse` reads it back; printing that again gives the same text. Names follow the
/// values' hints, made unique; values without a hint are numbered. Prints broken graphs too: a value that no live node
/// defines is named `%undefined.ID`.
[[nodiscard]] std::string print(const Graph& graph);

/// The name of every value as `print` gives it, with the percent sign, indexed by ValueId.
[[nodiscard]] std::vector<std::string> value_names(const Graph& graph);

/// A place in a program as comments and reports give it: "encoder.layer.0  model.cpp:7"; either may be empty.
[[nodiscard]] std::string place_text(std::string_view module, std::string_view source);

/// What a node is, in a word or two: `aten::add.Tensor`, `input 0`, `state fc.weight`.
[[nodiscard]] std::string op_name(const Node& node);

/// One argument as it is printed when it holds no value: `0.5`, `[1, none]`, `dtype(f16)`; values print as `%ID`.
[[nodiscard]] std::string to_string(const Arg& arg);

/// Shortest text that reads back as the same double; always with a point or an exponent, or `inf`, `-inf`, `nan`.
[[nodiscard]] std::string to_string(double number);

}  // namespace sinter::ir
