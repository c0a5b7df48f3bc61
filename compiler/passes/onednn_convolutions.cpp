#include "compiler/passes/onednn_convolutions.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/passes/convolution.h"
#include "compiler/passes/convolution_chain.h"
#include "compiler/passes/onednn_calls.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// True for a convolution over f32 images that oneDNN serves with what follows it. Those of one pixel are products.
bool is_served(const Graph& graph, const Node& node) {
  const auto found = convolution_of(graph, node);
  if (!found || pixel_convolution(graph, node)) return false;
  const auto* transposed = std::get_if<bool>(&node.args[convolution_transposed].data);
  if (transposed == nullptr || *transposed) return false;
  for (const size_t position : {convolution_stride, convolution_padding, convolution_dilation}) {
    if (!integers_per_axis(node.args[position], 2)) return false;
  }
  const Type& image = graph.type(found->input);
  const Type& weight = graph.type(found->weight);
  const Type& result = graph.type(node.results[0]);
  const bool floats = image.dtype == DType::f32 && weight.dtype == DType::f32 && result.dtype == DType::f32;
  if (!floats || image.rank() != 4 || !image.is_static() || !weight.is_static() || result.numel() == 0) return false;
  return !found->bias || (graph.type(*found->bias).dtype == DType::f32 && graph.type(*found->bias).rank() == 1);
}

/// A convolution and all that oneDNN does with its result: LibTorch's call takes a summand or an activation, not both.
struct StoredChain {
  SummedChain chain;
  std::optional<Activation> activation;
};

class StoredChains {
 public:
  StoredChains(const Graph& graph, const PassContext& context)
      : graph_(graph),
        packs_(context.freeze && !context.generic_sizes),
        chains_(graph, context.freeze, [&graph](const Node& node) { return is_served(graph, node); }) {}

  /// The longest chain that ends at the node, where a call for it takes less than what was captured.
  [[nodiscard]] std::optional<StoredChain> chain_at(const Node& node) const {
    if (node.results.empty() || graph_.value(node.results[0]).alias) return std::nullopt;
    if (auto activation = onednn_activation(node)) {
      const ValueId value = *node.args[0].value();
      auto chain = chains_.is_read_once(value) ? chains_.summed_chain_behind(value) : std::nullopt;
      const bool fits = chain && !chain->summand;
      return fits ? std::optional(StoredChain{*chain, std::move(activation)}) : std::nullopt;
    }
    auto chain = chains_.summed_chain_behind(node.results[0]);
    if (!chain) return std::nullopt;
    const bool saves_a_pass = chain->summand || chain->main.norm;
    return saves_a_pass || is_packed(*chain) ? std::optional(StoredChain{*chain, std::nullopt}) : std::nullopt;
  }

  [[nodiscard]] bool is_packed(const SummedChain& chain) const { return packs_ && chains_.is_kept(chain.main); }

 private:
  const Graph& graph_;
  bool packs_;
  ConvolutionChains chains_;
};

/// Adds the call that stands for a chain.
class CallBuilder {
 public:
  CallBuilder(Rewriter& rewrite, const Node& end, const StoredChain& found)
      : rewrite_(rewrite), end_(end), found_(found), folder_(rewrite, *found.chain.main.convolution) {}

  ValueId run(bool packed) {
    const SummedChain& chain = found_.chain;
    const Node& convolution = *chain.main.convolution;
    const ValueId image = *convolution.args[convolution_input].value();
    std::vector<Arg> placing;
    for (const size_t position : {convolution_padding, convolution_stride, convolution_dilation}) {
      placing.push_back(listed(*integers_per_axis(convolution.args[position], 2)));
    }
    placing.push_back(convolution.args[convolution_groups]);
    const FoldedConvolution folded = folder_.folded(chain.main);
    const ValueId weight =
        packed ? pack(folded.weight, placing, rewrite_.old().type(image).static_sizes()) : folded.weight;
    std::vector<Arg> given{{rewrite_.get(image)}};
    if (chain.summand) given.push_back({rewrite_.get(*chain.summand)});
    given.insert(given.end(), {{weight}, folded.shift ? Arg{*folded.shift} : Arg{}});
    given.insert(given.end(), placing.begin(), placing.end());
    add_epilogue(given);
    const auto name = chain.summand ? onednn_summed_convolution : onednn_convolution;
    return folder_.add(onednn_call(name), std::move(given), rewrite_.old().type(end_.results[0]));
  }

 private:
  ValueId pack(ValueId weight, const std::vector<Arg>& placing, const std::vector<int64_t>& image) {
    std::vector<Arg> given{{weight}};
    given.insert(given.end(), placing.begin(), placing.end());
    given.push_back(listed(image));
    Type packed = packed_weight(rewrite_.next().type(weight));
    return folder_.add(onednn_call(onednn_packed_convolution), std::move(given), std::move(packed));
  }

  /// (attr, scalars, algorithm); of a sum (binary_attr, alpha, unary_attr, unary_scalars, unary_algorithm)
  void add_epilogue(std::vector<Arg>& given) const {
    if (found_.chain.summand) {
      given.insert(given.end(), {{std::string("add")}, {1.0}, {}, {ArgList{}}, {}});
      return;
    }
    const Activation named = found_.activation.value_or(Activation{"none", {}});
    given.insert(given.end(), {{named.name}, {ArgList{}}, {named.algorithm}});
  }

  Rewriter& rewrite_;
  const Node& end_;
  const StoredChain& found_;
  ChainFolder folder_;
};

}  // namespace

PassResult onednn_convolutions(Graph& graph, const PassContext& context) {
  if (!context.device.onednn || context.numerics != Numerics::fast) return {};
  const StoredChains chains(graph, context);
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto found = chains.chain_at(node);
    return found ? std::optional(CallBuilder(rewrite, node, *found).run(chains.is_packed(found->chain))) : std::nullopt;
  });
}

}  // namespace sinter::passes
