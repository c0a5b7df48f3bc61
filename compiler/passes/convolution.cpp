#include "compiler/passes/convolution.h"

namespace sinter::passes {

std::optional<Convolution> convolution_of(const ir::Graph& graph, const ir::Node& node) {
  const auto* call = node.as<ir::Call>();
  if (call == nullptr || node.results.size() != 1) return std::nullopt;
  const bool known = (call->op == "aten::convolution" && node.args.size() == 9) ||
                     (call->op == "aten::_convolution" && node.args.size() == 13);  // TorchScript's
  if (!known) return std::nullopt;
  const ir::ValueId* input = node.args[convolution_input].value();
  const ir::ValueId* weight = node.args[convolution_weight].value();
  const auto* groups = std::get_if<int64_t>(&node.args[convolution_groups].data);
  if (input == nullptr || weight == nullptr || groups == nullptr) return std::nullopt;
  const ir::Type& type = graph.type(*input);
  const bool depthwise = *groups > 1 && type.rank() > 1 && type.sizes[1] == ir::Dim(*groups);
  Convolution convolution{*input, *weight, std::nullopt, depthwise};
  if (const ir::ValueId* bias = node.args[convolution_bias].value()) convolution.bias = *bias;
  return convolution;
}

bool is_undilated_image_call(const ir::Node& convolution) {
  const auto* transposed = std::get_if<bool>(&convolution.args[convolution_transposed].data);
  const auto dilation = ir::integers_per_axis(convolution.args[convolution_dilation], 2);
  return transposed != nullptr && !*transposed && dilation == std::vector<int64_t>{1, 1};
}

}  // namespace sinter::passes
