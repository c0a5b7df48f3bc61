#include <array>
#include <limits>

#include "compiler/ir/op_types.h"
#include "compiler/passes/reduced_call.h"

/// Softmax and its kin, as ATen's GPU kernels compute them: halves in f32, rounded at the end, and in between only
/// where ATen stores a half.
namespace sinter::passes {
namespace {

using namespace ir;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::optional<ReducedCall> float_rows(const Graph& graph, const CallSite& site, const Arg& dim,
                                      ResultSizes sizes = ResultSizes::same) {
  auto call = reduced_call(graph, site, dim, sizes);
  if (!call || !is_float(site.type().dtype) || !is_float(graph.type(*call->operand.value()).dtype)) return std::nullopt;
  return call;
}

/// Elements relative to the largest of their row; that is NaN for a row of -inf alone, and of one with inf.
struct Shifted {
  Arg largest;
  Arg difference;
  Arg exponentials;
  Arg sum;
};

Shifted shifted(PrimitiveBuilder& build, const ReducedCall& call) {
  const Arg x = build.wide(call.operand);
  Shifted row;
  row.largest = build.reduce("max", x, call.dims);
  row.difference = build.op("sub", {x, row.largest});
  row.exponentials = build.op("exp", {row.difference});
  row.sum = build.reduce("sum", row.exponentials, call.dims);
  return row;
}

/// _softmax(self, dim, half_to_float)
std::optional<Results> softmax(Graph& graph, const CallSite& site, const Arg& dim) {
  const auto call = float_rows(graph, site, dim);
  if (!call) return std::nullopt;
  PrimitiveBuilder build(graph, site, computation_dtype(site.type().dtype));
  const Shifted row = shifted(build, *call);
  return only_first(site, build.result(build.op("div", {row.exponentials, row.sum}), site.type()));
}

/// _log_softmax(self, dim, half_to_float)
std::optional<Results> log_softmax(Graph& graph, const CallSite& site, const Arg& dim) {
  const auto call = float_rows(graph, site, dim);
  if (!call) return std::nullopt;
  PrimitiveBuilder build(graph, site, computation_dtype(site.type().dtype));
  const Shifted row = shifted(build, *call);
  const Arg logarithm = build.op("log", {row.sum});
  return only_first(site, build.result(build.op("sub", {row.difference, logarithm}), site.type()));
}

/// _safe_softmax(self, dim, dtype): softmax, but zeros for rows of -inf alone.
std::optional<Results> safe_softmax(Graph& graph, const CallSite& site, const Arg& dim) {
  const auto call = float_rows(graph, site, dim);
  if (!call) return std::nullopt;
  const DType given = graph.type(*call->operand.value()).dtype;
  const DType dtype = site.type().dtype;
  if (given != dtype && !(is_half(given) && dtype == DType::f32)) return std::nullopt;
  PrimitiveBuilder build(graph, site, computation_dtype(dtype));
  const Shifted row = shifted(build, *call);
  const Arg masked = build.test("eq", {row.largest, {-infinity}});
  const Arg value = build.op("where", {masked, {0.0}, build.op("div", {row.exponentials, row.sum})});
  return only_first(site, build.result(value, site.type()));
}

/// The second tensor of a backward formula, of the sizes of the first.
bool has_output(const Graph& graph, const CallSite& site) {
  return reads_tensor(graph, site.args[1]) && is_float(graph.type(*site.args[1].value()).dtype) &&
         graph.type(*site.args[1].value()).sizes == site.type().sizes;
}

/// _softmax_backward_data(grad_output, output, dim, input_dtype): ATen stores the product of both before it goes on.
std::optional<Results> softmax_backward(Graph& graph, const CallSite& site, const Arg& dim) {
  const auto call = float_rows(graph, site, dim);
  if (!call || !has_output(graph, site)) return std::nullopt;
  const DType dtype = graph.type(*call->operand.value()).dtype;
  PrimitiveBuilder build(graph, site, computation_dtype(dtype));
  const Arg output = build.wide(site.args[1]);
  const Arg product = build.rounded(build.op("mul", {build.wide(call->operand), output}), dtype);
  const Arg sum = build.reduce("sum", product, call->dims);
  return only_first(site, build.result(build.op("fma", {build.op("neg", {output}), sum, product}), site.type()));
}

/// _log_softmax_backward_data(grad_output, output, dim, input_dtype)
std::optional<Results> log_softmax_backward(Graph& graph, const CallSite& site, const Arg& dim) {
  const auto call = float_rows(graph, site, dim);
  if (!call || !has_output(graph, site)) return std::nullopt;
  const DType dtype = graph.type(*call->operand.value()).dtype;
  PrimitiveBuilder build(graph, site, computation_dtype(dtype));
  const Arg gradient = build.wide(call->operand);
  const Arg sum = build.reduce("sum", gradient, call->dims);
  const Arg share = build.op("neg", {build.op("exp", {build.wide(site.args[1])})});
  return only_first(site, build.result(build.op("fma", {share, sum, gradient}), site.type()));
}

/// logsumexp(self, dim, keepdim), which ATen puts together from ops that each store a half.
std::optional<Results> logsumexp(Graph& graph, const CallSite& site, const Arg& dims) {
  const auto call = float_rows(graph, site, dims, ResultSizes::reduced);
  const DType dtype = site.type().dtype;
  if (!call || graph.type(*call->operand.value()).dtype != dtype) return std::nullopt;
  PrimitiveBuilder build(graph, site, computation_dtype(dtype));
  const auto stored = [&](std::string_view name, std::vector<Arg> operands) {
    return build.rounded(build.op(name, std::move(operands)), dtype);
  };
  const Arg x = build.wide(call->operand);
  const Arg largest = build.reduce("max", x, call->dims);
  const Arg infinite = build.test("eq", {build.op("abs", {largest}), {infinity}});
  const Arg shift = build.op("where", {infinite, {0.0}, largest});
  const Arg sum = build.reduce("sum", stored("exp", {stored("sub", {x, shift})}), call->dims);
  const Arg logarithm = stored("log", {build.rounded(sum, dtype)});
  return only_first(site, build.result(build.op("add", {logarithm, shift}), site.type()));
}

constexpr std::array softmax_rows = {
    RuleRow{"aten::_softmax", along<softmax, 1>},
    RuleRow{"aten::_log_softmax", along<log_softmax, 1>},
    RuleRow{"aten::_safe_softmax", along<safe_softmax, 1>},
    RuleRow{"aten::_softmax_backward_data", along<softmax_backward, 2>},
    RuleRow{"aten::_log_softmax_backward_data", along<log_softmax_backward, 2>},
    RuleRow{"aten::logsumexp", along<logsumexp, 1>},
};

}  // namespace

std::span<const RuleRow> softmax_rules() { return softmax_rows; }

}  // namespace sinter::passes
