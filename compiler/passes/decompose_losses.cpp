#include <array>

#include "compiler/ir/op_types.h"
#include "compiler/ir/reference.h"
#include "compiler/passes/primitive_builder.h"
#include "compiler/passes/reduction_rules.h"

/// Losses of two tensors and their gradients, as ATen computes them.
namespace sinter::passes {
namespace {

using namespace ir;

enum class LossKind : uint8_t { squared, smooth_l1, huber };

/// As ATen numbers them.
enum class LossReduction : uint8_t { none, mean, sum };

/// What follows the tensors of a call.
struct LossCall {
  LossReduction reduction;
  double bound = 0;  ///< beta or delta: the difference from where the loss is linear; none for squares
};

std::optional<LossReduction> loss_reduction(const Arg& arg) {
  const auto* number = std::get_if<int64_t>(&arg.data);
  if (number == nullptr || *number < 0 || *number > 2) return std::nullopt;
  return static_cast<LossReduction>(*number);
}

/// The call, when kernels can read its first `tensors` arguments and write its result.
std::optional<LossCall> loss_call(const Graph& graph, const CallSite& site, LossKind kind, size_t tensors) {
  const bool bounded = kind != LossKind::squared;
  if (site.args.size() < tensors + (bounded ? 2 : 1)) return std::nullopt;
  for (const Arg& arg : site.args.first(tensors)) {
    if (!reads_tensor(graph, arg)) return std::nullopt;
  }
  if (!writes_results(graph, site) || !is_float(site.type().dtype)) return std::nullopt;
  const auto reduction = loss_reduction(site.args[tensors]);
  if (!reduction) return std::nullopt;
  if (!bounded) return LossCall{*reduction};
  const auto* bound = std::get_if<double>(&site.args[tensors + 1].data);
  return bound == nullptr ? std::nullopt : std::optional(LossCall{*reduction, *bound});
}

/// The arithmetic of one element. ATen takes its steps in the result's dtype, and those of a smooth L1 loss of halves
/// on the CPU in f32.
class Loss {
 public:
  Loss(PrimitiveBuilder& build, const CallSite& site, LossKind kind, double bound, std::span<const Arg> operands)
      : build_(build),
        kind_(kind),
        dtype_(site.type().dtype),
        cuda_(site.type().device.kind == Device::Kind::cuda),
        steps_(kind == LossKind::smooth_l1 && !cuda_ ? computation_dtype(dtype_) : dtype_),
        bound_(number(bound)),
        difference_(step("sub", {operand(operands[0]), operand(operands[1])})) {}

  Arg element() {
    if (kind_ == LossKind::squared) return build_.op("mul", {difference_, difference_});
    const Arg distance = build_.op("abs", {difference_});
    const Arg half_square = build_.op("mul", {build_.op("mul", {distance, {0.5}}), distance});
    const Arg beyond = build_.op("sub", {distance, {0.5 * bound_}});
    const bool smooth = kind_ == LossKind::smooth_l1;
    const Arg inner = smooth ? build_.op("ratio", {half_square, {bound_}}) : half_square;
    const Arg outer = smooth ? beyond : build_.op("mul", {beyond, {bound_}});
    return build_.op("where", {build_.test("lt", {distance, {bound_}}), inner, outer});
  }

  /// The gradient of the difference: `factor` times the slope of the loss, times `upstream`.
  Arg gradient(const Arg& upstream, double factor) {
    const Arg gradient = operand(upstream);
    const double weight = number(factor);
    if (kind_ == LossKind::squared) return weighted_difference(weight, gradient);
    const bool smooth = kind_ == LossKind::smooth_l1;
    const Arg inner = smooth ? smooth_slope(weight, gradient) : weighted_difference(weight, gradient);
    const Arg outer = smooth ? step("mul", {gradient, {weight}}) : bounded_slope(weight, gradient);
    // At a bound of 0 it matters which part the bound belongs to.
    const Arg below = build_.test(cuda_ ? "lt" : "le", {difference_, {-bound_}});
    const Arg above = build_.test(cuda_ ? "gt" : "ge", {difference_, {bound_}});
    const Arg upper = build_.op("where", {above, outer, inner});
    return build_.op("where", {below, build_.op("neg", {outer}), upper});
  }

 private:
  Arg operand(const Arg& value) { return build_.rounded(value, dtype_); }
  Arg step(std::string_view name, std::vector<Arg> operands) {
    return build_.rounded(build_.op(name, std::move(operands)), steps_);
  }
  [[nodiscard]] double number(double value) const { return ref::round_to(value, steps_); }

  Arg weighted_difference(double weight, const Arg& gradient) {
    return step("mul", {step("mul", {difference_, {weight}}), gradient});
  }

  /// Of a smooth L1 loss where it is curved.
  Arg smooth_slope(double weight, const Arg& gradient) {
    if (cuda_) return build_.op("ratio", {weighted_difference(weight, gradient), {bound_}});
    const Arg slope = build_.op("ratio", {difference_, {bound_}});
    return build_.op("mul", {build_.op("mul", {slope, {weight}}), gradient});
  }

  /// Of a Huber loss where it is linear.
  Arg bounded_slope(double weight, const Arg& gradient) {
    if (cuda_) return build_.op("mul", {step("mul", {gradient, {weight}}), {bound_}});
    return build_.op("mul", {gradient, {number(weight * bound_)}});
  }

  PrimitiveBuilder& build_;
  LossKind kind_;
  DType dtype_;
  bool cuda_;
  DType steps_;  ///< what steps are rounded to
  double bound_;
  Arg difference_;
};

/// mse_loss(self, target, reduction), smooth_l1_loss(..., beta), huber_loss(..., delta). ATen stores the loss of every
/// element before it joins them.
template <LossKind kind>
std::optional<Results> loss(Graph& graph, const CallSite& site) {
  const auto call = loss_call(graph, site, kind, 2);
  if (!call) return std::nullopt;
  const auto operands = site.args.first(2);
  const bool reduced = call->reduction != LossReduction::none;
  const auto sizes = broadcast(graph.type(*operands[0].value()).sizes, graph.type(*operands[1].value()).sizes);
  if (!sizes || site.type().sizes != (reduced ? std::vector<Dim>{} : *sizes)) return std::nullopt;

  const DType dtype = site.type().dtype;
  PrimitiveBuilder build(graph, site, computation_dtype(dtype));
  const Arg element = Loss(build, site, kind, call->bound, operands).element();
  if (!reduced) return only_first(site, build.result(element, site.type()));

  const Arg stored = build.rounded(element, dtype);
  const Type type = build.type(stored);
  const std::vector<uint32_t> dims = first_dims(type.rank());
  if (!worth_generating(site.context, type, dims)) return std::nullopt;
  Arg joined = build.reduce("sum", stored, dims);
  if (call->reduction == LossReduction::mean) joined = build.op("mul", {joined, {mean_factor(type, dims, type.dtype)}});
  return only_first(site, build.result(joined, site.type()));
}

/// mse_loss_backward(grad_output, self, target, reduction), smooth_l1_loss_backward(..., beta),
/// huber_loss_backward(..., delta), where self has the sizes that all of them broadcast to.
template <LossKind kind>
std::optional<Results> loss_backward(Graph& graph, const CallSite& site) {
  const auto call = loss_call(graph, site, kind, 3);
  if (!call || graph.type(*site.args[1].value()).sizes != site.type().sizes) return std::nullopt;
  for (const Arg& arg : site.args.first(3)) {
    if (broadcast(site.type().sizes, graph.type(*arg.value()).sizes) != site.type().sizes) return std::nullopt;
  }
  PrimitiveBuilder build(graph, site, computation_dtype(site.type().dtype));
  const double slope = kind == LossKind::squared ? 2 : 1;
  const bool mean = call->reduction == LossReduction::mean;
  const double factor = mean ? slope / static_cast<double>(site.type().numel()) : slope;
  const Arg gradient = Loss(build, site, kind, call->bound, site.args.subspan(1, 2)).gradient(site.args[0], factor);
  return only_first(site, build.result(gradient, site.type()));
}

/// log_sigmoid_forward(self) -> (output, buffer). The buffer is exp(-|self|) on the CPU, and empty on CUDA, where ATen
/// takes the exponential again for the gradient.
std::optional<Results> log_sigmoid(Graph& graph, const CallSite& site) {
  if (site.args.empty() || !reads_tensor(graph, site.args[0]) || !writes_results(graph, site)) return std::nullopt;
  const bool cuda = site.type().device.kind == Device::Kind::cuda;
  const bool buffer = !only_first_used(site);
  if (buffer && (cuda || site.results.size() != 2)) return std::nullopt;
  const std::vector<Dim> sizes = graph.type(*site.args[0].value()).sizes;
  for (const ObservedResult& result : site.results) {
    if (result.used && (result.type.sizes != sizes || !is_float(result.type.dtype))) return std::nullopt;
  }
  if (!is_float(site.type().dtype)) return std::nullopt;

  PrimitiveBuilder build(graph, site, computation_dtype(site.type().dtype));
  const Arg x = build.wide(site.args[0]);
  const Arg exponential = build.op("exp", {build.op("neg", {build.op("abs", {x})})});
  Results results(site.results.size());
  if (site.results[0].used) {
    const Arg below_zero = build.op("minimum", {x, {0.0}});
    results[0] = build.result(build.op("sub", {below_zero, build.op("log1p", {exponential})}), site.type());
  }
  if (buffer) results[1] = build.result(exponential, site.results[1].type);
  return results;
}

constexpr std::array loss_rows = {
    RuleRow{"aten::mse_loss", loss<LossKind::squared>},
    RuleRow{"aten::mse_loss_backward", loss_backward<LossKind::squared>},
    RuleRow{"aten::smooth_l1_loss", loss<LossKind::smooth_l1>},
    RuleRow{"aten::smooth_l1_loss_backward", loss_backward<LossKind::smooth_l1>},
    RuleRow{"aten::huber_loss", loss<LossKind::huber>},
    RuleRow{"aten::huber_loss_backward", loss_backward<LossKind::huber>},
    RuleRow{"aten::log_sigmoid_forward", log_sigmoid},
};

}  // namespace

std::span<const RuleRow> loss_rules() { return loss_rows; }

}  // namespace sinter::passes
