#pragma once

#include <span>
#include <string_view>

#include "compiler/ir/graph.h"

/// When a pointwise ATen call can become primitives.
namespace sinter::passes {

/// True when a kernel on the graph's device can take the argument: a number, a tensor on that device of a dtype that
/// kernels read, or a 0-dim CPU tensor of such a dtype (a CUDA kernel gets its element as a parameter).
[[nodiscard]] bool is_kernel_operand(const ir::Graph& graph, const ir::Arg& arg);

/// True when a kernel on the graph's device can write a value of this type: static, dense, of a kernel dtype.
[[nodiscard]] bool is_kernel_result(const ir::Graph& graph, const ir::Type& type);

/// True when `expand` below turns the call into primitives.
[[nodiscard]] bool can_expand(const ir::Graph& graph, std::string_view aten_op, std::span<const ir::Arg> args,
                              const ir::Type& result);

/// Adds the primitives that compute the call, in its scope; gives a fresh value of exactly the type `result`. Nothing
/// when the call cannot be expanded (nodes added until then are dead).
[[nodiscard]] std::optional<ir::ValueId> expand_call(ir::Graph& graph, std::string_view aten_op,
                                                     std::span<const ir::Arg> args, const ir::Type& result,
                                                     ir::ScopeId scope);

}  // namespace sinter::passes
