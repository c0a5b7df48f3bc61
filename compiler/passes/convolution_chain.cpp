#include "compiler/passes/convolution_chain.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/op.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/frozen.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t fewest_results = int64_t{1} << 20;  ///< a pass over fewer takes no longer than two small launches
constexpr int64_t results_a_weight = 8;

}  // namespace

ConvolutionChains::ConvolutionChains(const Graph& graph, bool freeze, IsServed is_served)
    : graph_(graph), is_served_(std::move(is_served)), uses_(use_counts(graph)), frozen_(frozen_nodes(graph, freeze)) {}

std::optional<SummedChain> ConvolutionChains::summed_chain_behind(ValueId value) const {
  if (const auto chain = chain_behind(value)) return SummedChain{*chain, std::nullopt, std::nullopt};
  return sum_behind(value);
}

bool ConvolutionChains::is_read_once(ValueId value) const {
  return uses_[value.index] == 1 && !graph_.value(value).alias;
}

/// chain + summand, the summand of the same sizes.
std::optional<SummedChain> ConvolutionChains::sum_behind(ValueId value) const {
  const Node& sum = graph_.producer(value);
  if (call_named(sum, "aten::add.Tensor", 3) == nullptr || sum.args[2].data != Arg{int64_t{1}}.data)
    return std::nullopt;
  for (const size_t side : {0, 1}) {
    const ValueId* main = sum.args[side].value();
    const ValueId* other = sum.args[1 - side].value();
    if (main == nullptr || other == nullptr || *main == *other || !is_read_once(*main)) continue;
    const Type& type = graph_.type(*other);
    if (type.dtype != graph_.type(value).dtype || type.sizes != graph_.type(value).sizes) continue;
    const auto chain = chain_behind(*main);
    if (!chain) continue;
    SummedChain found{*chain, *other, std::nullopt};
    if (is_read_once(*other)) found.summands = normed_chain_behind(*other);
    return found;
  }
  return std::nullopt;
}

std::optional<ConvolutionChain> ConvolutionChains::normed_chain_behind(ValueId value) const {
  auto chain = chain_behind(value);
  return chain && chain->norm ? chain : std::nullopt;
}

std::optional<ConvolutionChain> ConvolutionChains::chain_behind(ValueId value) const {
  const Node& node = graph_.producer(value);
  if (is_served_(node)) return ConvolutionChain{&node, std::nullopt};
  const auto norm = stored_norm(node);
  if (!norm || node.args[0].value() == nullptr || !is_read_once(*node.args[0].value())) return std::nullopt;
  const Node& convolution = graph_.producer(*node.args[0].value());
  if (!is_served_(convolution)) return std::nullopt;
  const ConvolutionChain chain{&convolution, norm};
  return is_kept(chain) || pays_folded(convolution) ? std::optional(chain) : std::nullopt;
}

bool ConvolutionChains::is_kept(const ConvolutionChain& chain) const {
  std::vector<std::optional<ValueId>> sources{*chain.convolution->args[convolution_weight].value()};
  if (const auto& norm = chain.norm) {
    sources.insert(sources.end(), {norm->weight, norm->bias, norm->mean, norm->variance});
    const ValueId* bias = chain.convolution->args[convolution_bias].value();
    if (bias != nullptr) sources.emplace_back(*bias);
  }
  return std::ranges::all_of(sources, [&](const auto& source) { return !source || is_frozen(*source); });
}

/// True where computing the scaled weights and the shifted bias in every call takes far less than a pass over the
/// result.
bool ConvolutionChains::pays_folded(const Node& convolution) const {
  const int64_t weights = graph_.type(*convolution.args[convolution_weight].value()).numel();
  const int64_t results = graph_.type(convolution.results[0]).numel();
  return results >= fewest_results && results >= results_a_weight * weights;
}

/// A batch norm in inference whose result alone is read.
std::optional<StoredNorm> ConvolutionChains::stored_norm(const Node& node) const {
  const auto* call = node.as<Call>();
  if (call == nullptr || node.args.size() < 7) return std::nullopt;
  const bool untrained = call->op == "aten::_native_batch_norm_legit_no_training";
  const bool by_mode = (call->op == "aten::native_batch_norm" || call->op == "aten::cudnn_batch_norm") &&
                       node.args.size() == 8 && node.args[5].data == Arg{false}.data;
  const auto* eps = std::get_if<double>(&node.args[untrained ? 6 : node.args.size() - 1].data);
  if ((!untrained && !by_mode) || eps == nullptr) return std::nullopt;
  for (size_t i = 1; i < node.results.size(); ++i) {
    if (uses_[node.results[i].index] != 0) return std::nullopt;
  }
  for (size_t i = 1; i < 5; ++i) {
    const ValueId* vector = node.args[i].value();
    if (vector == nullptr && (i > 2 || !node.args[i].is_none())) return std::nullopt;
    if (vector != nullptr && graph_.type(*vector).rank() != 1) return std::nullopt;
  }
  const auto vector = [&](size_t i) {
    const ValueId* value = node.args[i].value();
    return value == nullptr ? std::nullopt : std::optional(*value);
  };
  return StoredNorm{vector(1), vector(2), *vector(3), *vector(4), *eps};
}

ValueId ChainFolder::add(Payload payload, std::vector<Arg> args, Type type) {
  return rewrite_.add(std::move(payload), std::move(args), std::move(type), scope_);
}

ValueId ChainFolder::cast(ValueId value, DType dtype) {
  Type wanted = type(value);
  if (wanted.dtype == dtype) return value;
  wanted.dtype = dtype;
  if (!wanted.is_dense()) wanted.strides = contiguous_strides(wanted.sizes);
  return add(Primitive{op_named("cast")}, {{value}}, std::move(wanted));
}

/// In f32; a result of the sizes and strides of the first operand that is a tensor.
ValueId ChainFolder::computed(std::string_view op, std::vector<Arg> args) {
  const auto first = std::ranges::find_if(args, [](const Arg& arg) { return arg.value() != nullptr; });
  Type wanted = type(*first->value());
  wanted.dtype = DType::f32;
  return add(Primitive{op_named(op)}, std::move(args), std::move(wanted));
}

ValueId ChainFolder::vector(ValueId old_value) { return cast(rewrite_.get(old_value), DType::f32); }

FoldedConvolution ChainFolder::folded(const ConvolutionChain& chain) {
  const Node& convolution = *chain.convolution;
  const ValueId weight = rewrite_.get(*convolution.args[convolution_weight].value());
  const ValueId* bias = convolution.args[convolution_bias].value();
  if (!chain.norm) return {weight, bias == nullptr ? std::nullopt : std::optional(rewrite_.get(*bias))};
  const StoredNorm& norm = *chain.norm;
  const ValueId spread = computed("sqrt", {{computed("add", {{vector(norm.variance)}, {norm.eps}})}});
  ValueId scale = computed("div", {{1.0}, {spread}});
  if (norm.weight) scale = computed("mul", {{scale}, {vector(*norm.weight)}});
  ValueId centre = computed("neg", {{vector(norm.mean)}});
  if (bias != nullptr) centre = computed("add", {{centre}, {vector(*bias)}});
  const ValueId shift =
      norm.bias ? computed("fma", {{centre}, {scale}, {vector(*norm.bias)}}) : computed("mul", {{centre}, {scale}});
  return {scaled(weight, scale), shift};
}

/// The weights times a number for each channel of the result.
ValueId ChainFolder::scaled(ValueId weight, ValueId scale) {
  const Type from = type(weight);
  const ValueId by_channel = add(View{0}, {{scale}}, {DType::f32, {from.sizes[0], 1, 1, 1}, {1, 1, 1, 1}, from.device});
  return cast(computed("mul", {{cast(weight, DType::f32)}, {by_channel}}), from.dtype);
}

std::optional<ValueId> ChainFolder::sum(std::optional<ValueId> a, std::optional<ValueId> b) {
  if (!a || !b) return a ? a : b;
  return computed("add", {{*a}, {*b}});
}

Arg listed(const std::vector<int64_t>& numbers) {
  ArgList list;
  for (const int64_t number : numbers) list.push_back({number});
  return {std::move(list)};
}

}  // namespace sinter::passes
