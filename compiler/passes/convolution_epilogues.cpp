#include "compiler/passes/convolution_epilogues.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/op.h"
#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/frozen.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t fewest_results = int64_t{1} << 20;  ///< a pass over fewer takes no longer than two small launches
constexpr int64_t results_a_weight = 8;
/// ATen's calls with an epilogue do not cut what 32 bits cannot index into parts, as its convolutions do.
constexpr int64_t most_elements = std::numeric_limits<int32_t>::max();

/// Batch norm by stored statistics.
struct StoredNorm {
  std::optional<ValueId> weight, bias;
  ValueId mean, variance;
  double eps = 0;
};

/// A convolution, what is added to each channel of its result, and the norm behind it.
struct Chain {
  const Node* convolution = nullptr;
  std::optional<StoredNorm> norm;
};

/// What a ReLU is taken of.
struct Epilogue {
  Chain main;
  std::optional<ValueId> summand;
  std::optional<Chain> summands;  ///< the convolution with a norm that the summand is, if nothing else reads it
};

class EpilogueMatcher {
 public:
  EpilogueMatcher(const Graph& graph, bool freeze)
      : graph_(graph), uses_(use_counts(graph)), frozen_(frozen_nodes(graph, freeze)) {}

  [[nodiscard]] std::optional<Epilogue> epilogue_at(const Node& node) const {
    if (call_named(node, "aten::relu", 1) == nullptr || node.args[0].value() == nullptr) return std::nullopt;
    if (graph_.value(node.results[0]).alias) return std::nullopt;
    const ValueId value = *node.args[0].value();
    if (!is_read_once(value)) return std::nullopt;
    if (const auto chain = chain_behind(value)) return Epilogue{*chain, std::nullopt, std::nullopt};
    return sum_behind(value);
  }

 private:
  [[nodiscard]] bool is_read_once(ValueId value) const { return uses_[value.index] == 1 && !graph_.value(value).alias; }

  /// chain + summand, the summand of the same sizes.
  [[nodiscard]] std::optional<Epilogue> sum_behind(ValueId value) const {
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
      Epilogue found{*chain, *other, std::nullopt};
      if (is_read_once(*other)) found.summands = normed_chain_behind(*other);
      return found;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Chain> normed_chain_behind(ValueId value) const {
    auto chain = chain_behind(value);
    return chain && chain->norm ? chain : std::nullopt;
  }

  [[nodiscard]] std::optional<Chain> chain_behind(ValueId value) const {
    const Node& node = graph_.producer(value);
    if (is_served(node)) return Chain{&node, std::nullopt};
    const auto norm = stored_norm(node);
    if (!norm || node.args[0].value() == nullptr || !is_read_once(*node.args[0].value())) return std::nullopt;
    const Node& convolution = graph_.producer(*node.args[0].value());
    if (!is_served(convolution)) return std::nullopt;
    return is_kept_folded(convolution, *norm) || pays_folded(convolution) ? std::optional(Chain{&convolution, norm})
                                                                          : std::nullopt;
  }

  /// True where the scaled weights and the shifted bias are computed once.
  [[nodiscard]] bool is_kept_folded(const Node& convolution, const StoredNorm& norm) const {
    const ValueId* bias = convolution.args[convolution_bias].value();
    const std::array<std::optional<ValueId>, 6> sources{
        *convolution.args[convolution_weight].value(),        norm.weight, norm.bias, norm.mean, norm.variance,
        bias == nullptr ? std::nullopt : std::optional(*bias)};
    return std::ranges::all_of(
        sources, [&](const auto& source) { return !source || frozen_[graph_.value(*source).producer.index]; });
  }

  /// True where computing them in every call takes far less than a pass over the result.
  [[nodiscard]] bool pays_folded(const Node& convolution) const {
    const int64_t weights = graph_.type(*convolution.args[convolution_weight].value()).numel();
    const int64_t results = graph_.type(convolution.results[0]).numel();
    return results >= fewest_results && results >= results_a_weight * weights;
  }

  /// True for a convolution that cuDNN can add to as it stores.
  [[nodiscard]] bool is_served(const Node& node) const {
    const auto found = convolution_of(graph_, node);
    if (!found || std::get<int64_t>(node.args[convolution_groups].data) != 1) return false;
    const bool placed =
        integers_per_axis(node.args[convolution_stride], 2) && integers_per_axis(node.args[convolution_padding], 2);
    if (!placed || !is_undilated_image_call(node)) return false;
    const Type& image = graph_.type(found->input);
    const Type& weight = graph_.type(found->weight);
    const Type& result = graph_.type(node.results[0]);
    const bool halves = is_half(image.dtype) && weight.dtype == image.dtype && result.dtype == image.dtype;
    if (!halves || image.rank() != 4 || !image.is_static() || !weight.is_static()) return false;
    if (result.numel() == 0 || std::max(image.numel(), result.numel()) > most_elements) return false;
    if (found->bias && (graph_.type(*found->bias).dtype != image.dtype || graph_.type(*found->bias).rank() != 1)) {
      return false;
    }
    return missing_halves(weight.sizes[0].value()) == 0 && missing_halves(weight.sizes[1].value()) == 0;
  }

  /// A batch norm in inference whose result alone is read.
  [[nodiscard]] std::optional<StoredNorm> stored_norm(const Node& node) const {
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

  const Graph& graph_;
  std::vector<uint32_t> uses_;
  std::vector<bool> frozen_;
};

/// Builds the call that stands for a ReLU and what is behind it.
class EpilogueBuilder {
 public:
  EpilogueBuilder(Rewriter& rewrite, const Node& relu) : rewrite_(rewrite), relu_(relu) {}

  ValueId run(const Epilogue& found) {
    const Node& convolution = *found.main.convolution;
    const Folded main = folded(found.main);
    std::optional<ValueId> shift = main.shift;
    Arg summand;
    if (found.summand) summand = {rewrite_.get(*found.summand)};
    if (found.summands) {
      const Folded other = folded(*found.summands);
      summand = {convolved(*found.summands->convolution, other.weight)};
      shift = shift ? computed("add", {{*shift}, {*other.shift}}) : *other.shift;
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
    return add(std::move(call), std::move(given), rewrite_.old().type(relu_.results[0]));
  }

 private:
  /// A convolution's weights, and what is added to its channels.
  struct Folded {
    ValueId weight;
    std::optional<ValueId> shift;  ///< f32, but for a bias without a norm
  };

  ValueId add(Payload payload, std::vector<Arg> args, Type type) {
    return rewrite_.add(std::move(payload), std::move(args), std::move(type), relu_.scope);
  }

  [[nodiscard]] const Type& type(ValueId value) const { return rewrite_.next().type(value); }

  static Arg listed(const std::vector<int64_t>& numbers) {
    ArgList list;
    for (const int64_t number : numbers) list.push_back({number});
    return {std::move(list)};
  }

  ValueId cast(ValueId value, DType dtype) {
    Type wanted = type(value);
    if (wanted.dtype == dtype) return value;
    wanted.dtype = dtype;
    if (!wanted.is_dense()) wanted.strides = contiguous_strides(wanted.sizes);
    return add(Primitive{op_named("cast")}, {{value}}, std::move(wanted));
  }

  /// In f32; a result of the sizes and strides of the first operand that is a tensor.
  ValueId computed(std::string_view op, std::vector<Arg> args) {
    const auto first = std::ranges::find_if(args, [](const Arg& arg) { return arg.value() != nullptr; });
    Type wanted = type(*first->value());
    wanted.dtype = DType::f32;
    return add(Primitive{op_named(op)}, std::move(args), std::move(wanted));
  }

  ValueId vector(ValueId old_value) { return cast(rewrite_.get(old_value), DType::f32); }

  Folded folded(const Chain& chain) {
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
  ValueId scaled(ValueId weight, ValueId scale) {
    const Type from = type(weight);
    const ValueId by_channel =
        add(View{0}, {{scale}}, {DType::f32, {from.sizes[0], 1, 1, 1}, {1, 1, 1, 1}, from.device});
    return cast(computed("mul", {{cast(weight, DType::f32)}, {by_channel}}), from.dtype);
  }

  /// The bias in the convolution's dtype; zeros where there is none, which LibTorch would make in every call.
  ValueId as_bias(std::optional<ValueId> shift, const Node& convolution) {
    const Type& weight = rewrite_.old().type(*convolution.args[convolution_weight].value());
    if (shift) return cast(*shift, weight.dtype);
    return add(Primitive{op_named("cast")}, {{0.0}}, contiguous(weight.dtype, {weight.sizes[0]}, weight.device));
  }

  /// The same convolution by other weights, without a bias.
  ValueId convolved(const Node& convolution, ValueId weight) {
    std::vector<Arg> args = rewrite_.map_args(convolution.args);
    args[convolution_weight] = {weight};
    args[convolution_bias] = {};
    return add(*convolution.as<Call>(), std::move(args), rewrite_.old().type(convolution.results[0]));
  }

  Rewriter& rewrite_;
  const Node& relu_;
};

}  // namespace

PassResult convolution_epilogues(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || !context.device.channels_last_half) return {};
  if (context.numerics != Numerics::fast || context.generic_sizes) return {};
  const EpilogueMatcher matcher(graph, context.freeze);
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto found = matcher.epilogue_at(node);
    return found ? std::optional(EpilogueBuilder(rewrite, node).run(*found)) : std::nullopt;
  });
}

}  // namespace sinter::passes
