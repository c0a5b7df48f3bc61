#include "compiler/passes/split_bias.h"

#include <array>

#include "compiler/passes/convolution.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// True where ATen's own kernel for depthwise convolutions, which adds the bias itself, gives way to cuDNN's, behind
/// which ATen adds it in a pass of its own: for images in channels-last order.
bool depthwise_adds_apart(const Type& result, const DeviceInfo& device) {
  if (result.rank() != 4) return false;
  return is_half(result.dtype) ? device.channels_last_half : result.dtype == DType::f32 && device.channels_last_float;
}

/// True when the bias of this call is better added by a kernel.
bool is_added_apart(const Graph& graph, const Node& node, const DeviceInfo& device) {
  const auto convolution = convolution_of(graph, node);
  if (!convolution || !convolution->bias) return false;
  const Type& result = graph.type(node.results[0]);
  if (convolution->depthwise && !depthwise_adds_apart(result, device)) return false;
  const Type& bias = graph.type(*convolution->bias);
  return is_kernel_result(graph, result) && is_kernel_operand(graph, {*convolution->bias}) && result.rank() > 2 &&
         bias.rank() == 1 && bias.dtype == result.dtype;
}

/// The vector as a view that broadcasts along dim 1 of a value of `rank` dims.
ValueId per_channel(Rewriter& rewrite, ValueId bias, size_t rank, ScopeId scope) {
  Type type = rewrite.next().type(bias);
  for (size_t dim = 2; dim < rank; ++dim) {
    type.sizes.emplace_back(1);
    type.strides.emplace_back(1);
  }
  return rewrite.add(View{0}, {{bias}}, std::move(type), scope);
}

ValueId split(Rewriter& rewrite, const Node& node) {
  const Type& type = rewrite.old().type(node.results[0]);
  std::vector<Arg> args = rewrite.map_args(node.args);
  const ValueId bias = *args[convolution_bias].value();
  args[convolution_bias] = {};
  const ValueId product = rewrite.add(*node.as<Call>(), std::move(args), type, node.scope);
  const std::array<Arg, 3> operands{{{product}, {per_channel(rewrite, bias, type.rank(), node.scope)}, {int64_t{1}}}};
  const auto sum = expand_call(rewrite.next(), "aten::add.Tensor", operands, type, rewrite.map_scope(node.scope));
  return sum.value();
}

}  // namespace

PassResult split_bias(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    if (!is_added_apart(graph, node, context.device)) return std::nullopt;
    return split(rewrite, node);
  });
}

}  // namespace sinter::passes
