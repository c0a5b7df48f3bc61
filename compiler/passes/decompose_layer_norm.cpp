#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/moments.h"
#include "compiler/passes/normalized_call.h"

/// Layer norm and RMS norm, as ATen's GPU kernels compute them but for the variance, which is taken in two passes.
namespace sinter::passes {
namespace {

using namespace ir;

/// normalized * weight + bias, the last two rounded once; either may be None.
Arg scaled(PrimitiveBuilder& build, const Arg& normalized, const Arg& weight, const Arg& bias) {
  if (weight.is_none()) return bias.is_none() ? normalized : build.op("add", {normalized, build.wide(bias)});
  if (bias.is_none()) return build.op("mul", {normalized, build.wide(weight)});
  return build.op("fma", {normalized, build.wide(weight), build.wide(bias)});
}

/// native_layer_norm(input, normalized_shape, weight, bias, eps): the output, and mean and 1 / deviation of the rows.
std::optional<Results> layer_norm(Graph& graph, const CallSite& site) {
  if (site.args.size() < 5 || site.results.size() != 3) return std::nullopt;
  const auto* eps = std::get_if<double>(&site.args[4].data);
  const auto call = normalized_call(graph, site, 0, {2, 3});
  if (!call || eps == nullptr) return std::nullopt;

  PrimitiveBuilder build(graph, site, call->compute);
  const Moments found = moments(build, build.wide(call->input), call->dims);
  const Arg inverse = inverse_deviation(build, found.squares, call->row, *eps);
  Results results(3);
  if (site.results[0].used) {
    const Arg normalized = build.op("mul", {found.difference, inverse});
    results[0] = build.result(scaled(build, normalized, site.args[2], site.args[3]), site.type());
  }
  if (site.results[1].used) results[1] = build.result(found.mean, site.results[1].type);
  if (site.results[2].used) results[2] = build.result(inverse, site.results[2].type);
  return results;
}

/// _fused_rms_norm(input, normalized_shape, weight, eps): the output, and 1 / root of the mean square of the rows.
/// Where eps is None it is that of the dtype it is computed in.
std::optional<Results> rms_norm(Graph& graph, const CallSite& site) {
  if (site.args.size() < 4 || site.results.size() != 2) return std::nullopt;
  const auto* number = std::get_if<double>(&site.args[3].data);
  const auto call = normalized_call(graph, site, 0, {2});
  if (!call || (number == nullptr && !site.args[3].is_none())) return std::nullopt;

  const double least = call->compute == DType::f64 ? 0x1p-52 : 0x1p-23;
  PrimitiveBuilder build(graph, site, call->compute);
  const Arg x = build.wide(call->input);
  const Arg squares = build.reduce("sum", build.op("mul", {x, x}), call->dims);
  const Arg inverse = inverse_deviation(build, squares, call->row, number == nullptr ? least : *number);
  Results results(2);
  if (site.results[0].used) {
    const Arg normalized = build.op("mul", {x, inverse});
    results[0] = build.result(scaled(build, normalized, site.args[2], {}), site.type());
  }
  if (site.results[1].used) results[1] = build.result(inverse, site.results[1].type);
  return results;
}

constexpr std::array layer_norm_rows = {
    RuleRow{"aten::native_layer_norm", layer_norm},
    RuleRow{"aten::_fused_rms_norm", rms_norm},
};

}  // namespace

std::span<const RuleRow> layer_norm_rules() { return layer_norm_rows; }

}  // namespace sinter::passes
