#pragma once

#include <span>
#include <vector>

#include "compiler/passes/primitive_builder.h"

namespace sinter::passes {

/// A batch norm by the statistics of its batch.
struct BatchNormCall {
  ir::Arg input;
  ir::Arg weight;  ///< as the next three, None or a vector over the channels
  ir::Arg bias;
  ir::Arg running_mean;  ///< as running_variance, None where no statistics are kept
  ir::Arg running_variance;
  double momentum = 0;
  double eps = 0;
  std::vector<uint32_t> dims;  ///< all but that of the channels
  int64_t count = 0;           ///< elements of a channel
};

/// What the arguments (input, weight, bias, running_mean, running_var, training, momentum, eps) ask for, where they ask
/// for the statistics of the batch, kernels can read them, and generated kernels are the place for such reductions.
[[nodiscard]] std::optional<BatchNormCall> batch_norm_call(const ir::Graph& graph, const PassContext& context,
                                                           std::span<const ir::Arg> args);

/// The dims of a tensor of `rank` dims without that of the channels.
[[nodiscard]] std::vector<uint32_t> dims_of_channel(size_t rank);

/// True when the argument is a vector over the channels of a tensor of type `input` that kernels can read.
[[nodiscard]] bool is_channel_vector(const ir::Graph& graph, const ir::Arg& arg, const ir::Type& input);

/// A vector over the channels, in the computation dtype, that broadcasts along dim 1 of `rank`.
[[nodiscard]] ir::Arg per_channel(PrimitiveBuilder& build, const ir::Arg& vector, size_t rank);

}  // namespace sinter::passes
