#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/ir/view_source.h"
#include "compiler/passes/grouped_call.h"
#include "compiler/passes/moments.h"

/// Group norm, as ATen's GPU kernels compute it but for the variance, which is taken in two passes.
namespace sinter::passes {
namespace {

using namespace ir;

/// Schema positions: 0 input, 1 weight, 2 bias, 3 N, 4 C, 5 HxW, 6 groups, 7 eps.
class GroupNorm {
 public:
  GroupNorm(Graph& graph, const CallSite& site, const Grouped& grouped)
      : build_(graph, site, computation_dtype(site.type().dtype)), site_(site), grouped_(grouped) {}

  /// `rows`: the input, each group of channels a row.
  Results run(const Arg& input, const Type& rows, double eps) {
    build_.lay_out(rows);
    const Arg x = build_.wide(build_.view(input, rows.sizes, rows.strides));
    const Moments found = moments(build_, x, last_dims(2, 4));
    const Arg inverse = inverse_deviation(build_, found.squares, grouped_.channels * grouped_.elements, eps);
    Results results(3);
    if (site_.results[0].used) {
      const Arg mean = stored(found.mean, 1);
      const Arg scale = stored(inverse, 2);
      results[0] = build_.result(normalized(x, mean, scale), site_.type());
    }
    if (site_.results[1].used) results[1] = build_.result(found.mean, site_.results[1].type);
    if (site_.results[2].used) results[2] = build_.result(inverse, site_.results[2].type);
    return results;
  }

 private:
  /// A statistic as the kernel goes on with it: on CUDA ATen's stores it before.
  Arg stored(const Arg& statistic, size_t result) {
    const Type& type = site_.results[result].type;
    return type.device.kind == Device::Kind::cuda ? build_.rounded(statistic, type.dtype) : statistic;
  }

  /// (x - mean) * inverse; with a weight or bias x * scale + (bias - mean * scale), where scale = inverse * weight.
  Arg normalized(const Arg& x, const Arg& mean, const Arg& inverse) {
    const Arg& weight = site_.args[1];
    const Arg& bias = site_.args[2];
    if (weight.is_none() && bias.is_none()) return build_.op("mul", {build_.op("sub", {x, mean}), inverse});
    const Arg scale = weight.is_none() ? inverse : build_.op("mul", {inverse, per_channel(weight)});
    const Arg centre = build_.op("neg", {scale});
    const Arg shift =
        bias.is_none() ? build_.op("mul", {centre, mean}) : build_.op("fma", {centre, mean, per_channel(bias)});
    return build_.op("fma", {x, scale, shift});
  }

  Arg per_channel(const Arg& vector) {
    return build_.wide(build_.reshape(vector, {1, grouped_.groups, grouped_.channels, 1}));
  }

  PrimitiveBuilder build_;
  const CallSite& site_;
  const Grouped& grouped_;
};

std::optional<Results> group_norm(Graph& graph, const CallSite& site) {
  if (site.args.size() < 8 || site.results.size() != 3) return std::nullopt;
  const auto* eps = std::get_if<double>(&site.args[7].data);
  const auto grouped = grouped_sizes(site, 3);
  if (eps == nullptr || !grouped || site.args[0].value() == nullptr || !writes_results(graph, site))
    return std::nullopt;
  // ATen's call for CUDA takes rows, which a kernel need not read.
  Arg input{before_copy(graph, *site.args[0].value())};
  auto rows = seen_in_groups(graph, input, *grouped);
  if (!rows) {
    input = site.args[0];
    rows = seen_in_groups(graph, input, *grouped);
  }
  const bool fits = rows && is_parameter(graph, site.args[1], *grouped) &&
                    is_parameter(graph, site.args[2], *grouped) && site.type().is_contiguous() &&
                    site.type().sizes == graph.type(*input.value()).sizes;
  if (!fits || !worth_generating(site.context, *rows, last_dims(2, 4))) return std::nullopt;
  return GroupNorm(graph, site, *grouped).run(input, *rows, *eps);
}

constexpr std::array group_norm_rows = {
    RuleRow{"aten::native_group_norm", group_norm},
};

}  // namespace

std::span<const RuleRow> group_norm_rules() { return group_norm_rows; }

}  // namespace sinter::passes
