#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/graph.h"

/// What passes know of ATen ops by name.
namespace sinter::passes {

/// "aten::add.Tensor" -> "aten::add".
[[nodiscard]] std::string_view base_name(std::string_view op);

/// A node that calls the op with as many args; null where it is none.
[[nodiscard]] const ir::Call* call_named(const ir::Node& node, std::string_view op, size_t args);

/// The pure op that computes what a writing call writes: Call::functional where the frontend found one, else the
/// in-place form of an op of the table without its underscore; empty when there is none.
[[nodiscard]] std::string pure_form(const ir::Call& call);

/// True for calls that may refuse the data they are given (an index out of range, a singular matrix, a divisor of
/// zero), other than by its types: eager throws then, whether anybody reads the result or not, so they run where they
/// stand.
[[nodiscard]] bool may_refuse(const ir::Graph& graph, const ir::Node& node);
/// The same by the name of an op alone ("aten::embedding"), for ops that refuse more than divisors.
[[nodiscard]] bool refuses_by_name(std::string_view op, ir::Device::Kind device);

/// False for a graph whose calls multiply no matrices, and are nothing that passes make a product of.
[[nodiscard]] bool may_multiply(const ir::Graph& graph);

/// A value with other elements in a part of it: args are base, source, sizes, strides and offset of the part, which
/// counts from the base's first element (ATen's own op counts from the start of the storage; it is never called).
inline constexpr std::string_view scatter = "aten::as_strided_scatter";

}  // namespace sinter::passes
