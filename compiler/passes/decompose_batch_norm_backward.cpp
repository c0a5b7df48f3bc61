#include <algorithm>
#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/batch_norm_call.h"
#include "compiler/passes/gradient_mask.h"
#include "compiler/passes/reduction_rules.h"

/// The gradients of batch norm, as ATen's GPU kernels compute them.
namespace sinter::passes {
namespace {

using namespace ir;

/// What the calls have in common.
struct BatchNormGradients {
  Arg upstream;
  Arg input;
  Arg weight;    ///< None or a vector over the channels
  Arg mean;      ///< of the channels, as the next
  Arg variance;  ///< 1 / deviation where the statistics are the batch's, else the variance
  bool of_batch = true;
  double eps = 0;
  Gradients results;
};

class BatchNormBackward {
 public:
  BatchNormBackward(Graph& graph, const CallSite& site, const BatchNormGradients& call)
      : build_(graph, site, computation_dtype(graph.type(*call.input.value()).dtype)),
        call_(call),
        rank_(graph.type(*call.input.value()).rank()),
        dims_(dims_of_channel(rank_)),
        count_(elements_along(graph.type(*call.input.value()), dims_)),
        upstream_(build_.wide(call.upstream)) {
    const Arg variance = per_channel(build_, call_.variance, rank_);
    inverse_ = call_.of_batch ? variance : inverse_root(variance);
    input_ = build_.wide(call_.input);
    mean_ = per_channel(build_, call_.mean, rank_);
  }

  /// (g - normalized * mean(g * normalized) - mean(g)) * weight / deviation; where the statistics do not depend on the
  /// input, without what is taken from g.
  ValueId of_input(const Type& type) {
    const Arg scale =
        call_.weight.is_none() ? inverse_ : build_.op("mul", {inverse_, per_channel(build_, call_.weight, rank_)});
    const Arg own = call_.of_batch ? projected() : upstream_;
    return build_.result(build_.op("mul", {own, scale}), type);
  }

  ValueId of_weight(const Type& type) { return build_.result(build_.op("mul", {along_x(), inverse_}), type); }
  ValueId of_bias(const Type& type) { return build_.result(sum(), type); }

 private:
  Arg inverse_root(const Arg& variance) {
    const Arg deviation = build_.op("sqrt", {build_.op("add", {variance, {call_.eps}})});
    return build_.op("div", {{1.0}, deviation});
  }

  /// What is taken from g is its product with mean - x here, where sums take that with x - mean: both are computed in
  /// two kernels where the reduction is split, and neither stores a difference for the other.
  Arg projected() {
    const Arg share = {1.0 / static_cast<double>(count_)};
    const Arg shared = build_.op("mul", {build_.op("mul", {along_x(), share}), build_.op("mul", {inverse_, inverse_})});
    const Arg left = build_.op("fma", {build_.op("sub", {mean_, input_}), shared, upstream_});
    return build_.op("sub", {left, build_.op("mul", {sum(), share})});
  }

  Arg sum() {
    if (sum_.is_none()) sum_ = build_.reduce("sum", upstream_, dims_);
    return sum_;
  }
  Arg along_x() {
    if (!along_x_.is_none()) return along_x_;
    const Arg centred = build_.op("sub", {input_, mean_});
    along_x_ = build_.reduce("sum", build_.op("mul", {upstream_, centred}), dims_);
    return along_x_;
  }

  PrimitiveBuilder build_;
  const BatchNormGradients& call_;
  size_t rank_;
  std::vector<uint32_t> dims_;
  int64_t count_;
  Arg upstream_;
  Arg inverse_;
  Arg input_;
  Arg mean_;
  Arg sum_;      ///< of the upstream gradient
  Arg along_x_;  ///< sum of its products with the centred input
};

bool is_used(const CallSite& site, const BatchNormGradients& call, size_t i) {
  return passes::is_used(site, call.results[i]);
}

bool reduces_batch(const CallSite& site, const BatchNormGradients& call) {
  return (is_used(site, call, 0) && call.of_batch) || is_used(site, call, 1) || is_used(site, call, 2);
}

bool can_generate(const Graph& graph, const CallSite& site, const BatchNormGradients& call) {
  if (!reads_tensor(graph, call.input) || !reads_tensor(graph, call.upstream) || !writes_results(graph, site))
    return false;
  const Type& input = graph.type(*call.input.value());
  const Type& upstream = graph.type(*call.upstream.value());
  if (!is_float(input.dtype) || !is_float(upstream.dtype) || input.rank() < 2 || upstream.sizes != input.sizes)
    return false;
  const bool vectors = is_channel_vector(graph, call.mean, input) && is_channel_vector(graph, call.variance, input) &&
                       (call.weight.is_none() || is_channel_vector(graph, call.weight, input));
  if (!vectors || site.context.device.backend != Backend::cuda) return false;
  return !reduces_batch(site, call) || worth_generating(site.context, input, dims_of_channel(input.rank()));
}

std::optional<Results> differentiate(Graph& graph, const CallSite& site, const BatchNormGradients& call) {
  if (!can_generate(graph, site, call)) return std::nullopt;
  const Type& input = graph.type(*call.input.value());
  if (is_used(site, call, 0) && site.results[*call.results[0]].type.sizes != input.sizes) return std::nullopt;
  BatchNormBackward build(graph, site, call);
  Results results(site.results.size());
  const auto set = [&](size_t i, const auto& make) {
    if (is_used(site, call, i)) results[*call.results[i]] = make(site.results[*call.results[i]].type);
  };
  set(0, [&](const Type& type) { return build.of_input(type); });
  set(1, [&](const Type& type) { return build.of_weight(type); });
  set(2, [&](const Type& type) { return build.of_bias(type); });
  return results;
}

/// (grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask), and what the
/// forward pass reserved for another library.
std::optional<Results> batch_norm_backward(Graph& graph, const CallSite& site) {
  if (site.args.size() < 10) return std::nullopt;
  const auto* of_batch = std::get_if<bool>(&site.args[7].data);
  const auto* eps = std::get_if<double>(&site.args[8].data);
  const auto results = gradients_of(site, site.args[9]);
  if (of_batch == nullptr || eps == nullptr || !results) return std::nullopt;
  const size_t statistics = *of_batch ? 5 : 3;
  return differentiate(graph, site,
                       {site.args[0], site.args[1], site.args[2], site.args[statistics], site.args[statistics + 1],
                        *of_batch, *eps, *results});
}

/// (input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon, reserve), of a forward pass in
/// training; save_var is 1 / deviation.
std::optional<Results> cudnn_batch_norm_backward(Graph& graph, const CallSite& site) {
  if (site.args.size() != 9 || site.results.size() != 3) return std::nullopt;
  return differentiate(graph, site,
                       {site.args[1], site.args[0], site.args[2], site.args[5], site.args[6], true, 0.0,
                        Gradients{size_t{0}, size_t{1}, size_t{2}}});
}

constexpr std::array batch_norm_backward_rows = {
    RuleRow{"aten::native_batch_norm_backward", batch_norm_backward},
    RuleRow{"aten::batch_norm_backward", batch_norm_backward},
    RuleRow{"aten::cudnn_batch_norm_backward", cudnn_batch_norm_backward},
};

}  // namespace

std::span<const RuleRow> batch_norm_backward_rules() { return batch_norm_backward_rows; }

}  // namespace sinter::passes
