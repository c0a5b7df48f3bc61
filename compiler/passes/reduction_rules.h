#pragma once

#include <optional>
#include <vector>

#include "compiler/passes/decompose_rules.h"

/// What the rules for calls that reduce have in common.
namespace sinter::passes {

/// True when a generated kernel is the place for a reduction of a value of type `operand` along `dims`: on CUDA, where
/// neighbours in memory belong together, and where its rows are many enough to fill the device or the pass
/// split_reductions can make more of them; on the CPU, where each row is one piece of memory and rows are enough for
/// its threads. Others are better off in ATen's kernels. Never for an empty operand, nor where `dims` hold one element.
[[nodiscard]] bool worth_generating(const PassContext& context, const ir::Type& operand,
                                    const std::vector<uint32_t>& dims);

/// The dims of a tensor of `rank` dims that an argument names, ascending: a number or a list of them, negative ones
/// counting from the end; None and an empty list name all. Nothing where it names a dim twice or one there is not.
[[nodiscard]] std::optional<std::vector<uint32_t>> named_dims(const ir::Arg& arg, size_t rank);
/// The first `count` dims.
[[nodiscard]] std::vector<uint32_t> first_dims(size_t count);
/// The last `count` dims of `rank`.
[[nodiscard]] std::vector<uint32_t> last_dims(size_t count, size_t rank);

/// Number of elements along the dims.
[[nodiscard]] int64_t elements_along(const ir::Type& type, const std::vector<uint32_t>& dims);

/// What ATen multiplies a sum along the dims with to get the mean: rows / elements, both rounded before to the dtype
/// that it computes in.
[[nodiscard]] double mean_factor(const ir::Type& operand, const std::vector<uint32_t>& dims, ir::DType compute);

/// The sizes with 1 along the dims.
[[nodiscard]] std::vector<ir::Dim> kept_sizes(const ir::Type& type, const std::vector<uint32_t>& dims);
/// True when a result of these sizes is a reduction of `operand` along the dims, with the dims or without.
[[nodiscard]] bool is_reduced(const std::vector<ir::Dim>& sizes, const ir::Type& operand,
                              const std::vector<uint32_t>& dims);

/// True when a kernel can write every result that is used.
[[nodiscard]] bool writes_results(const ir::Graph& graph, const CallSite& site);
/// True when the argument is a tensor that a kernel can read.
[[nodiscard]] bool reads_tensor(const ir::Graph& graph, const ir::Arg& arg);
/// The same, or the argument is None.
[[nodiscard]] bool reads_optional_tensor(const ir::Graph& graph, const ir::Arg& arg);

}  // namespace sinter::passes
