#include <algorithm>
#include <array>

#include "compiler/passes/gradient_mask.h"
#include "compiler/passes/normalized_call.h"
#include "compiler/passes/primitive_builder.h"

/// The gradients of layer norm and RMS norm, as ATen's GPU kernels compute them.
namespace sinter::passes {
namespace {

using namespace ir;

/// Where the arguments stand in the schema.
struct Positions {
  std::optional<size_t> mean;  ///< RMS norm has none
  size_t inverse;              ///< 1 / deviation of the rows
  size_t weight;
  size_t mask;       ///< which gradients are wanted: of input, weight, bias
  size_t gradients;  ///< entries of the mask
};
constexpr size_t gradient_position = 0;
constexpr size_t input_position = 1;
/// (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
constexpr Positions layer_norm_schema{3, 4, 5, 7, 3};
/// (grad_out, input, normalized_shape, rstd, weight, output_mask)
constexpr Positions rms_norm_schema{std::nullopt, 3, 4, 5, 2};

class NormBackward {
 public:
  NormBackward(Graph& graph, const CallSite& site, const Positions& at, const NormalizedCall& call)
      : build_(graph, site, call.compute), site_(site), at_(at), call_(call) {
    upstream_ = build_.wide(site.args[gradient_position]);
    const Arg x = build_.wide(call_.input);
    const Arg centred = at.mean ? build_.op("sub", {x, build_.wide(site.args[*at.mean])}) : x;
    inverse_ = build_.wide(site.args[at.inverse]);
    normalized_ = build_.op("mul", {centred, inverse_});
  }

  /// (n g - sum(g) - normalized * sum(g * normalized)) / n / deviation, with g = weight * gradient and n elements a
  /// row. Without a mean to subtract its share, sum(g), is none.
  ValueId of_input(const Type& type) {
    const Arg& weight = site_.args[at_.weight];
    const Arg weighted = weight.is_none() ? upstream_ : build_.op("mul", {upstream_, build_.wide(weight)});
    const Arg along_x = build_.reduce("sum", build_.op("mul", {weighted, normalized_}), call_.dims);
    const auto count = static_cast<double>(call_.row);
    const Arg own = build_.op("mul", {weighted, {count}});
    Arg sum = build_.op("fma", {normalized_, build_.op("neg", {along_x}), own});
    if (at_.mean) sum = build_.op("sub", {sum, build_.reduce("sum", weighted, call_.dims)});
    return build_.result(build_.op("mul", {sum, build_.op("mul", {inverse_, {1.0 / count}})}), type);
  }

  /// The sum of g * normalized over the rows. It is taken of the negative and turned at the end: with the value that
  /// the gradient of the input has, the kernel of that gradient would store it for this one.
  ValueId of_weight(const std::vector<uint32_t>& rows, const Type& type) {
    const Arg sum = build_.reduce("sum", build_.op("mul", {upstream_, opposite()}), rows);
    return build_.result(build_.op("neg", {sum}), type);
  }

  ValueId of_bias(const std::vector<uint32_t>& rows, const Type& type) {
    return build_.result(build_.reduce("sum", upstream_, rows), type);
  }

 private:
  /// -normalized, as another value.
  Arg opposite() {
    const Arg x = build_.wide(call_.input);
    if (!at_.mean) return build_.op("mul", {x, build_.op("neg", {inverse_})});
    return build_.op("mul", {build_.op("sub", {build_.wide(site_.args[*at_.mean]), x}), inverse_});
  }

  PrimitiveBuilder build_;
  const CallSite& site_;
  const Positions& at_;
  const NormalizedCall& call_;
  Arg upstream_;
  Arg inverse_;
  Arg normalized_;
};

/// Adds the call again, for the gradients of weight and bias alone: ATen computes them by another kernel than that of
/// the input.
void call_for_others(Graph& graph, const CallSite& site, const Positions& at, Results& results) {
  std::vector<Arg> args(site.args.begin(), site.args.end());
  ArgList mask = *args[at.mask].list();
  mask[0] = {false};
  args[at.mask] = {std::move(mask)};
  std::vector<Type> types;
  for (const ObservedResult& result : site.results.subspan(1)) types.push_back(result.type);
  Call call;
  call.op = site.op;
  const NodeId id = graph.add(std::move(call), std::move(args), std::move(types), site.scope);
  std::ranges::copy(graph.node(id).results, results.begin() + 1);
}

bool fits(const Graph& graph, const CallSite& site, const Positions& at, const NormalizedCall& call) {
  const Type& type = graph.type(*call.input.value());
  const auto has_sizes = [&](const Arg& arg, const std::vector<Dim>& sizes) {
    return reads_tensor(graph, arg) && graph.type(*arg.value()).sizes == sizes;
  };
  const std::vector<Dim> rows = kept_sizes(type, call.dims);
  return has_sizes(site.args[gradient_position], type.sizes) && has_sizes(site.args[at.inverse], rows) &&
         (!at.mean || has_sizes(site.args[*at.mean], rows));
}

template <const Positions& at>
std::optional<Results> norm_backward(Graph& graph, const CallSite& site) {
  if (site.args.size() <= at.mask) return std::nullopt;
  const auto gradients = gradients_of(site, site.args[at.mask], at.gradients);
  const auto call = normalized_call(graph, site, input_position, {at.weight});
  if (!gradients || !call || !fits(graph, site, at, *call)) return std::nullopt;
  const auto used = [&](size_t i) { return is_used(site, (*gradients)[i]); };
  const bool others = used(1) || used(2);
  const Type& type = graph.type(*call->input.value());
  const std::vector<uint32_t> rows = first_dims(type.rank() - call->dims.size());
  const bool generate_others = others && worth_generating(site.context, type, rows);
  if (!used(0) && !generate_others) return std::nullopt;

  Results results(site.results.size());
  NormBackward build(graph, site, at, *call);
  if (used(0)) results[0] = build.of_input(site.type());
  if (generate_others) {
    if (used(1)) results[*(*gradients)[1]] = build.of_weight(rows, site.results[*(*gradients)[1]].type);
    if (used(2)) results[*(*gradients)[2]] = build.of_bias(rows, site.results[*(*gradients)[2]].type);
  } else if (others) {
    call_for_others(graph, site, at, results);
  }
  return results;
}

constexpr std::array norm_backward_rows = {
    RuleRow{"aten::native_layer_norm_backward", norm_backward<layer_norm_schema>},
    RuleRow{"aten::_fused_rms_norm_backward", norm_backward<rms_norm_schema>},
};

}  // namespace

std::span<const RuleRow> norm_backward_rules() { return norm_backward_rows; }

}  // namespace sinter::passes
