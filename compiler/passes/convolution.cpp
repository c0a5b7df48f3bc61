#include "compiler/passes/convolution.h"

#include <algorithm>
#include <array>
#include <utility>

#include "compiler/passes/layout_rules.h"

namespace sinter::passes {
namespace {

bool has_one_pixel(const ir::Type& image) {
  return image.rank() == 4 && image.is_static() && image.sizes[2] == ir::Dim(1) && image.sizes[3] == ir::Dim(1);
}

}  // namespace

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

std::optional<Convolution> pixel_convolution(const ir::Graph& graph, const ir::Node& node) {
  const auto convolution = convolution_of(graph, node);
  if (!convolution || !is_undilated_image_call(node)) return std::nullopt;
  if (std::get<int64_t>(node.args[convolution_groups].data) != 1) return std::nullopt;
  const ir::Type& result = graph.type(node.results[0]);
  const std::array types{&graph.type(convolution->input), &graph.type(convolution->weight), &result};
  const bool fits = std::ranges::all_of(types, [&](const ir::Type* type) {
    return has_one_pixel(*type) && type->dtype == result.dtype && type->numel() > 0;
  });
  const bool in_rows = fits && result.strides[1] == ir::Dim(1) && result.strides[0] == result.sizes[1];
  return in_rows ? convolution : std::nullopt;
}

std::optional<ImageConvolution> image_convolution(const ir::Graph& graph, const ir::Node& node) {
  const auto convolution = convolution_of(graph, node);
  if (!convolution || !is_undilated_image_call(node)) return std::nullopt;
  const ir::Type& input = graph.type(convolution->input);
  const ir::Type& weight = graph.type(convolution->weight);
  const ir::Type& result = graph.type(node.results[0]);
  auto stride = ir::integers_per_axis(node.args[convolution_stride], 2);
  auto padding = ir::integers_per_axis(node.args[convolution_padding], 2);
  const bool known = input.is_static() && weight.is_static() && result.is_static() && result.numel() > 0;
  if (!known || weight.rank() != 4 || input.rank() != 4 || !stride || !padding) return std::nullopt;
  const bool halves = ir::is_half(input.dtype) && weight.dtype == input.dtype && result.dtype == input.dtype;
  if (!halves || !ir::same_layout(result, channels_last(result))) return std::nullopt;
  const int64_t groups = std::get<int64_t>(node.args[convolution_groups].data);
  return ImageConvolution{*convolution, groups, weight.static_sizes(), *std::move(stride), *std::move(padding)};
}

}  // namespace sinter::passes
