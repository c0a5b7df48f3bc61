#pragma once

#include <string_view>

#include "compiler/ir/graph.h"
#include "compiler/passes/decompose_rules.h"

/// Batch norm in training as ATen's forms have it in common: (input, weight, bias, running mean, running variance,
/// training, momentum, eps), giving output, mean and 1 / deviation of the channels.
namespace sinter::passes {

/// Returns new running statistics behind the three results.
inline constexpr std::string_view functional_training_norm = "aten::_native_batch_norm_legit_functional";
inline constexpr size_t training_norm_mean = 3;  ///< argument: the running mean; behind it the running variance
inline constexpr size_t training_norm_arguments = 8;
inline constexpr size_t training_norm_results = 3;  ///< that all forms have

struct TrainingNumbers {
  double momentum = 0;
  double eps = 0;
};

/// The numbers of a call in training; nothing in inference, and where they are no constants.
[[nodiscard]] std::optional<TrainingNumbers> training_numbers(std::span<const ir::Arg> args);

/// The dims that statistics are taken along: all but that of the channels.
[[nodiscard]] std::vector<uint32_t> statistics_dims(size_t rank);

/// True where kernels are generated for the statistics of an image of this type, and its elements.
[[nodiscard]] bool generates_training_norm(const PassContext& context, const ir::Type& image);

/// True for a call of native_batch_norm or cudnn_batch_norm in training that is captured with its numbers known, and
/// for which kernels are generated.
[[nodiscard]] bool is_training_norm(const ir::Graph& graph, const ir::Node& node, const PassContext& context);

/// The rule for these calls: kernels for the output, the statistics, and new running statistics where they are results.
[[nodiscard]] std::optional<Results> training_norm(ir::Graph& graph, const CallSite& site);

}  // namespace sinter::passes
