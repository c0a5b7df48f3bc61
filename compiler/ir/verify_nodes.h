#pragma once

#include <optional>
#include <string>

#include "compiler/ir/graph.h"

/// Rules of single nodes: each gives the first problem in words, or nothing. They may assume that the node's values
/// are defined and their types well formed.
namespace sinter::ir {

/// Sizes and strides of one length, none negative, and a span that fits in 63 bits.
[[nodiscard]] std::optional<std::string> type_problem(const Type& type);
/// A native op of the table with the operands its type rule asks for, and the broadcast of their sizes as its result.
[[nodiscard]] std::optional<std::string> primitive_problem(const Graph& graph, const Node& node);
/// A reduction of the table over ascending dims of its operand, which it takes the dtype of.
[[nodiscard]] std::optional<std::string> reduce_problem(const Graph& graph, const Node& node);
/// Values of one dtype that have the result's sizes but along the dim, and there add up to it.
[[nodiscard]] std::optional<std::string> join_problem(const Graph& graph, const Node& node);
/// A position for each of its ascending dims, which broadcasts to the result's sizes, and an operand of its rank.
[[nodiscard]] std::optional<std::string> gather_problem(const Graph& graph, const Node& node);
[[nodiscard]] std::optional<std::string> attention_problem(const Graph& graph, const Node& node);
/// No operand, and a result that counts along one of its dims.
[[nodiscard]] std::optional<std::string> position_problem(const Graph& graph, const Node& node);
/// The base's dtype and device, and no element outside the base's storage.
[[nodiscard]] std::optional<std::string> view_problem(const Graph& graph, const Node& node);
/// An input or state, and a value of its dtype, sizes and device.
[[nodiscard]] std::optional<std::string> write_problem(const Graph& graph, const Node& node);
/// A body whose inputs and outputs are the node's args and results. The body's own nodes are not looked at.
[[nodiscard]] std::optional<std::string> fused_problem(const Graph& graph, const Node& node);

}  // namespace sinter::ir
