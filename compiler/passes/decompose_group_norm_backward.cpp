#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/gradient_mask.h"
#include "compiler/passes/grouped_call.h"
#include "compiler/passes/primitive_builder.h"

/// The gradients of group norm. They are ATen's formulas with the mean taken from every element first, where ATen's
/// kernels take it from sums, which loses digits where the mean is far from zero.
namespace sinter::passes {
namespace {

using namespace ir;

constexpr uint32_t sample_dim = 0;
constexpr uint32_t channel_dim = 2;
constexpr uint32_t element_dim = 3;

/// (grad_out, input, mean, rstd, weight, N, C, HxW, groups, output_mask)
class GroupNormBackward {
 public:
  GroupNormBackward(Graph& graph, const CallSite& site, const Grouped& grouped)
      : build_(graph, site, computation_dtype(graph.type(*site.args[1].value()).dtype)), grouped_(grouped) {
    upstream_ = build_.wide(build_.reshape(site.args[0], grouped.sizes()));
    const Arg x = build_.wide(build_.reshape(site.args[1], grouped.sizes()));
    const Arg mean = of_group(site.args[2]);
    inverse_ = of_group(site.args[3]);
    const Arg normalized = build_.op("mul", {build_.op("sub", {x, mean}), inverse_});
    product_ = build_.op("mul", {upstream_, normalized});
    opposite_ = build_.op("mul", {build_.op("sub", {mean, x}), inverse_});
    if (!site.args[4].is_none())
      weight_ = build_.wide(build_.reshape(site.args[4], {1, grouped.groups, grouped.channels, 1}));
  }

  /// From here on sums are those of channels, which the gradients of weight and bias need too, joined to groups.
  void sum_channels() {
    upstream_sum_ = build_.reduce("sum", upstream_, {element_dim});
    product_sum_ = build_.reduce("sum", product_, {element_dim});
  }

  /// (n g - sum(g) - normalized * sum(g * normalized)) / n / deviation, with g = weight * gradient and n elements a
  /// group.
  ValueId of_input(const Type& type) {
    const Arg share = {1.0 / static_cast<double>(grouped_.channels * grouped_.elements)};
    const Arg along = build_.op("mul", {group_sum(upstream_, upstream_sum_), share});
    const Arg along_x = build_.op("mul", {group_sum(product_, product_sum_), share});
    const Arg left = build_.op("fma", {opposite_, along_x, weighted(upstream_)});
    return build_.result(build_.op("mul", {build_.op("sub", {left, along}), inverse_}), type);
  }

  ValueId of_weight(const Type& type) { return of_channels(product_sum_, type); }
  ValueId of_bias(const Type& type) { return of_channels(upstream_sum_, type); }

 private:
  Arg of_group(const Arg& statistic) {
    return build_.wide(build_.reshape(statistic, {grouped_.samples, grouped_.groups, 1, 1}));
  }
  Arg weighted(const Arg& value) { return weight_.is_none() ? value : build_.op("mul", {value, weight_}); }

  Arg group_sum(const Arg& elements, const Arg& channels) {
    if (channels.is_none()) return build_.reduce("sum", weighted(elements), {channel_dim, element_dim});
    return build_.reduce("sum", weighted(channels), {channel_dim});
  }

  ValueId of_channels(const Arg& sum, const Type& type) {
    return build_.result(build_.reduce("sum", sum, {sample_dim}), type);
  }

  PrimitiveBuilder build_;
  const Grouped& grouped_;
  Arg upstream_;
  Arg inverse_;
  Arg product_;   ///< of gradient and normalized input
  Arg opposite_;  ///< -normalized: another value, that no kernel of the sums stores for the gradient of the input
  Arg weight_;
  Arg upstream_sum_;
  Arg product_sum_;
};

bool fits(const Graph& graph, const CallSite& site, const Grouped& grouped) {
  const Grouped statistics{grouped.samples, grouped.groups, 1, 1};
  return is_grouped(graph, site.args[0], grouped) && is_grouped(graph, site.args[1], grouped) &&
         is_grouped(graph, site.args[2], statistics) && is_grouped(graph, site.args[3], statistics) &&
         is_parameter(graph, site.args[4], grouped);
}

bool has_type(const CallSite& site, const std::optional<size_t>& gradient, int64_t elements) {
  return !is_used(site, gradient) ||
         (site.results[*gradient].type.is_contiguous() && site.results[*gradient].type.numel() == elements);
}

std::optional<Results> group_norm_backward(Graph& graph, const CallSite& site) {
  if (site.args.size() < 10 || !writes_results(graph, site)) return std::nullopt;
  const auto grouped = grouped_sizes(site, 5);
  const auto gradients = gradients_of(site, site.args[9]);
  if (!grouped || !gradients || !fits(graph, site, *grouped)) return std::nullopt;
  const auto [input, weight, bias] = *gradients;
  const int64_t channels = grouped->groups * grouped->channels;
  if (!has_type(site, input, grouped->samples * channels * grouped->elements) || !has_type(site, weight, channels) ||
      !has_type(site, bias, channels))
    return std::nullopt;
  const bool by_channel = is_used(site, weight) || is_used(site, bias);
  const DType dtype = graph.type(*site.args[1].value()).dtype;
  const Type rows = contiguous(dtype, grouped->sizes(), graph.type(*site.args[1].value()).device);
  if (!worth_generating(site.context, rows, last_dims(by_channel ? 1 : 2, 4))) return std::nullopt;

  GroupNormBackward build(graph, site, *grouped);
  if (by_channel) build.sum_channels();
  Results results(site.results.size());
  if (is_used(site, input)) results[*input] = build.of_input(site.results[*input].type);
  if (is_used(site, weight)) results[*weight] = build.of_weight(site.results[*weight].type);
  if (is_used(site, bias)) results[*bias] = build.of_bias(site.results[*bias].type);
  return results;
}

constexpr std::array group_norm_backward_rows = {
    RuleRow{"aten::native_group_norm_backward", group_norm_backward},
};

}  // namespace

std::span<const RuleRow> group_norm_backward_rules() { return group_norm_backward_rows; }

}  // namespace sinter::passes
