#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/primitive_builder.h"
#include "compiler/passes/training_norm.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Batch norm by stored statistics: (x - mean) / sqrt(var + eps) * weight + bias. Schema positions: 0 input, 1 weight,
/// 2 bias, 3 mean, 4 var. As ATen computes it: on CUDA the mean is subtracted first, so that a mean far from zero
/// cancels exactly; on the CPU scale and shift of a channel are made first.
class BatchNorm {
 public:
  BatchNorm(Graph& graph, const CallSite& site)
      : build_(graph, site, computation_dtype(site.type().dtype)), site_(site) {}

  ValueId build(double eps) {
    const Arg spread = build_.op("sqrt", {build_.op("add", {per_channel(site_.args[4]), {eps}})});
    const Arg inverse = build_.op("div", {{1.0}, spread});
    const Arg& weight = site_.args[1];
    const Arg scale = weight.is_none() ? inverse : build_.op("mul", {inverse, per_channel(weight)});
    const Arg result = site_.type().device.kind == Device::Kind::cuda ? centred(scale) : folded(scale);
    return build_.result(result, site_.type());
  }

 private:
  /// (x - mean) * scale + bias, the last two rounded once as by ATen's kernel.
  Arg centred(const Arg& scale) {
    const Arg difference = build_.op("sub", {build_.wide(site_.args[0]), per_channel(site_.args[3])});
    if (site_.args[2].is_none()) return build_.op("mul", {difference, scale});
    return build_.op("fma", {difference, scale, per_channel(site_.args[2])});
  }

  /// x * scale + (bias - mean * scale), each sum rounded once.
  Arg folded(const Arg& scale) {
    const Arg centre = build_.op("neg", {per_channel(site_.args[3])});
    const Arg shift = site_.args[2].is_none() ? build_.op("mul", {centre, scale})
                                              : build_.op("fma", {centre, scale, per_channel(site_.args[2])});
    return build_.op("fma", {build_.wide(site_.args[0]), scale, shift});
  }

  /// A vector over the channels, in the computation dtype, that broadcasts along dim 1 of the input.
  Arg per_channel(const Arg& vector) {
    std::vector<Dim> sizes = build_.type(vector).sizes;
    std::vector<Dim> strides = build_.type(vector).strides;
    sizes.resize(site_.type().rank() - 1, 1);
    strides.resize(sizes.size(), 1);
    return build_.wide(build_.view(vector, std::move(sizes), std::move(strides)));
  }

  PrimitiveBuilder build_;
  const CallSite& site_;
};

std::optional<Results> batch_norm(Graph& graph, const CallSite& site, const Arg& eps) {
  const auto* number = std::get_if<double>(&eps.data);
  const Type& type = site.type();
  const bool fits = number != nullptr && only_first_used(site) && is_float(type.dtype) && type.rank() >= 2 &&
                    is_kernel_result(graph, type);
  if (!fits) return std::nullopt;
  if (site.args[0].value() == nullptr) return std::nullopt;
  for (const Arg& arg : site.args.first(5)) {
    if (!arg.is_none() && (arg.value() == nullptr || !is_kernel_operand(graph, arg))) return std::nullopt;
  }
  for (const Arg& statistic : site.args.subspan(3, 2)) {
    if (statistic.is_none() || graph.type(*statistic.value()).rank() != 1) return std::nullopt;
  }
  return only_first(site, BatchNorm(graph, site).build(*number));
}

/// native_batch_norm and cudnn_batch_norm(..., training, momentum, eps)
std::optional<Results> batch_norm_by_mode(Graph& graph, const CallSite& site) {
  if (site.args.size() < 8) return std::nullopt;
  const auto* training = std::get_if<bool>(&site.args[5].data);
  if (training == nullptr) return std::nullopt;
  if (*training) return site.args[3].is_none() ? training_norm(graph, site) : std::nullopt;  // else it writes there
  return batch_norm(graph, site, site.args[7]);
}

/// _native_batch_norm_legit_no_training(..., momentum, eps)
std::optional<Results> batch_norm_without_training(Graph& graph, const CallSite& site) {
  return site.args.size() < 7 ? std::nullopt : batch_norm(graph, site, site.args[6]);
}

constexpr std::array batch_norm_rows = {
    RuleRow{"aten::native_batch_norm", batch_norm_by_mode, true},
    RuleRow{"aten::cudnn_batch_norm", batch_norm_by_mode, true},
    RuleRow{"aten::_native_batch_norm_legit_no_training", batch_norm_without_training, true},
};

}  // namespace

std::span<const RuleRow> batch_norm_rules() { return batch_norm_rows; }

}  // namespace sinter::passes
