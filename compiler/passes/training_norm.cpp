#include "compiler/passes/training_norm.h"

#include <algorithm>

#include "compiler/passes/aten.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/reduction_rules.h"

namespace sinter::passes {

using namespace ir;

namespace {

/// A vector over the channels in f32, or none.
bool is_parameter(const Graph& graph, const Arg& arg, const Type& image) {
  if (arg.is_none()) return true;
  if (arg.value() == nullptr) return false;
  const Type& type = graph.type(*arg.value());
  return type.rank() == 1 && type.sizes[0] == image.sizes[1] && type.dtype == DType::f32 &&
         type.device == image.device && type.is_dense();
}

}  // namespace

std::optional<TrainingNumbers> training_numbers(std::span<const Arg> args) {
  if (args.size() != training_norm_arguments) return std::nullopt;
  const auto* training = std::get_if<bool>(&args[5].data);
  const auto* momentum = std::get_if<double>(&args[6].data);
  const auto* eps = std::get_if<double>(&args[7].data);
  if (training == nullptr || !*training || momentum == nullptr || eps == nullptr) return std::nullopt;
  return TrainingNumbers{*momentum, *eps};
}

std::vector<uint32_t> statistics_dims(size_t rank) {
  std::vector<uint32_t> dims = {0};
  for (uint32_t dim = 2; dim < rank; ++dim) dims.push_back(dim);
  return dims;
}

bool generates_training_norm(const PassContext& context, const Type& image) {
  if (context.device.backend != Backend::cuda || image.rank() < 2 || !image.is_static()) return false;
  const bool computed_in_f32 = is_half(image.dtype) || image.dtype == DType::f32;
  return computed_in_f32 && image.is_dense() && worth_generating(context, image, statistics_dims(image.rank()));
}

bool is_training_norm(const Graph& graph, const Node& node, const PassContext& context) {
  const auto* call = node.as<Call>();
  if (call == nullptr || node.results.size() < training_norm_results || !training_numbers(node.args)) return false;
  const std::string_view name = base_name(call->op);
  if (name != "aten::native_batch_norm" && name != "aten::cudnn_batch_norm") return false;
  if (node.args[0].value() == nullptr) return false;
  const Type& image = graph.type(*node.args[0].value());
  if (!generates_training_norm(context, image)) return false;
  const auto parameters = std::span(node.args).subspan(1, 4);
  const bool known = std::ranges::all_of(parameters, [&](const Arg& arg) { return is_parameter(graph, arg, image); });
  const Type& result = graph.type(node.results[0]);
  return known && node.args[training_norm_mean].is_none() == node.args[training_norm_mean + 1].is_none() &&
         result.sizes == image.sizes && result.dtype == image.dtype && is_kernel_result(graph, result);
}

}  // namespace sinter::passes
