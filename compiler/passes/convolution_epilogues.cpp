#include "compiler/passes/convolution_epilogues.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/op.h"
#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/convolution_chain.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// ATen's calls with an epilogue do not cut what 32 bits cannot index into parts, as its convolutions do.
constexpr int64_t most_elements = std::numeric_limits<int32_t>::max();

/// True for a convolution that cuDNN can add to as it stores.
bool is_added_to_by_cudnn(const Graph& graph, const Node& node) {
  const auto found = convolution_of(graph, node);
  if (!found || std::get<int64_t>(node.args[convolution_groups].data) != 1) return false;
  const bool placed =
      integers_per_axis(node.args[convolution_stride], 2) && integers_per_axis(node.args[convolution_padding], 2);
  if (!placed || !is_undilated_image_call(node)) return false;
  const Type& image = graph.type(found->input);
  const Type& weight = graph.type(found->weight);
  const Type& result = graph.type(node.results[0]);
  const bool halves = is_half(image.dtype) && weight.dtype == image.dtype && result.dtype == image.dtype;
  if (!halves || image.rank() != 4 || !image.is_static() || !weight.is_static()) return false;
  if (result.numel() == 0 || std::max(image.numel(), result.numel()) > most_elements) return false;
  if (found->bias && (graph.type(*found->bias).dtype != image.dtype || graph.type(*found->bias).rank() != 1)) {
    return false;
  }
  const int64_t filters = weight.sizes[0].value(), channels = weight.sizes[1].value();
  return missing_halves(filters) == 0 && (missing_halves(channels) == 0 || channels == colours);
}

/// What a ReLU is taken of.
std::optional<SummedChain> epilogue_at(const Graph& graph, const ConvolutionChains& chains, const Node& node) {
  if (call_named(node, "aten::relu", 1) == nullptr || node.args[0].value() == nullptr) return std::nullopt;
  if (graph.value(node.results[0]).alias) return std::nullopt;
  const ValueId value = *node.args[0].value();
  return chains.is_read_once(value) ? chains.summed_chain_behind(value) : std::nullopt;
}

/// Builds the call that stands for a ReLU and what is behind it.
class EpilogueBuilder {
 public:
  EpilogueBuilder(Rewriter& rewrite, const Node& relu) : rewrite_(rewrite), relu_(relu), folder_(rewrite, relu) {}

  ValueId run(const SummedChain& found) {
    const Node& convolution = *found.main.convolution;
    const FoldedConvolution main = folder_.folded(found.main);
    std::optional<ValueId> shift = main.shift;
    Arg summand;
    if (found.summand) summand = {rewrite_.get(*found.summand)};
    if (found.summands) {
      const FoldedConvolution other = folder_.folded(*found.summands);
      summand = {convolved(*found.summands->convolution, other.weight)};
      shift = folder_.sum(shift, other.shift);
    }
    std::vector<Arg> given{{rewrite_.get(*convolution.args[convolution_input].value())}, {main.weight}};
    if (found.summand) given.insert(given.end(), {summand, {int64_t{1}}});
    given.push_back({as_bias(shift, convolution)});
    for (const size_t position : {convolution_stride, convolution_padding, convolution_dilation}) {
      given.push_back(listed(*integers_per_axis(convolution.args[position], 2)));  // the op takes no single number
    }
    given.push_back(convolution.args[convolution_groups]);
    Call call;
    call.op = found.summand ? "aten::cudnn_convolution_add_relu" : "aten::cudnn_convolution_relu";
    return folder_.add(std::move(call), std::move(given), rewrite_.old().type(relu_.results[0]));
  }

 private:
  /// The bias in the convolution's dtype; zeros where there is none, which LibTorch would make in every call.
  ValueId as_bias(std::optional<ValueId> shift, const Node& convolution) {
    const Type& weight = rewrite_.old().type(*convolution.args[convolution_weight].value());
    if (shift) return folder_.cast(*shift, weight.dtype);
    return folder_.add(Primitive{op_named("cast")}, {{0.0}},
                       contiguous(weight.dtype, {weight.sizes[0]}, weight.device));
  }

  /// The same convolution by other weights, without a bias.
  ValueId convolved(const Node& convolution, ValueId weight) {
    std::vector<Arg> args = rewrite_.map_args(convolution.args);
    args[convolution_weight] = {weight};
    args[convolution_bias] = {};
    return folder_.add(*convolution.as<Call>(), std::move(args), rewrite_.old().type(convolution.results[0]));
  }

  Rewriter& rewrite_;
  const Node& relu_;
  ChainFolder folder_;
};

}  // namespace

PassResult convolution_epilogues(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || !context.device.channels_last_half) return {};
  if (context.numerics != Numerics::fast || context.generic_sizes) return {};
  const ConvolutionChains chains(graph, context.freeze,
                                 [&](const Node& node) { return is_added_to_by_cudnn(graph, node); });
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto found = epilogue_at(graph, chains, node);
    return found ? std::optional(EpilogueBuilder(rewrite, node).run(*found)) : std::nullopt;
  });
}

}  // namespace sinter::passes
