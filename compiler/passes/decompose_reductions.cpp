#include <array>
#include <cmath>

#include "compiler/ir/op_types.h"
#include "compiler/passes/reduced_call.h"

/// Reductions to one value a row, as ATen's GPU kernels compute them: halves are joined in f32 and rounded at the end.
namespace sinter::passes {
namespace {

using namespace ir;

/// sum, prod, mean: every element is converted to the result's dtype before, which for integers is i64.
std::optional<Results> accumulated(Graph& graph, const CallSite& site, const Arg& dims, std::string_view name,
                                   bool mean = false) {
  const DType dtype = site.type().dtype;
  const DType compute = computation_dtype(dtype);
  const auto call = reduced_call(graph, site, dims);
  if (!call || !reduces(reduction_named(name), compute) || (mean && !is_float(dtype))) return std::nullopt;
  PrimitiveBuilder build(graph, site, compute);
  Arg joined = build.reduce(name, build.rounded(call->operand, dtype), call->dims);
  if (mean) joined = build.op("mul", {joined, {mean_factor(build.type(call->operand), call->dims, compute)}});
  return only_first(site, build.result(joined, site.type()));
}

std::optional<Results> sum(Graph& graph, const CallSite& site, const Arg& dims) {
  return accumulated(graph, site, dims, "sum");
}
std::optional<Results> prod(Graph& graph, const CallSite& site, const Arg& dims) {
  return accumulated(graph, site, dims, "prod");
}
std::optional<Results> mean(Graph& graph, const CallSite& site, const Arg& dims) {
  return accumulated(graph, site, dims, "sum", true);
}

/// The largest or smallest element; NaN where there is one.
std::optional<Results> extreme(Graph& graph, const CallSite& site, const Arg& dims, std::string_view numbers,
                               std::string_view booleans) {
  const DType dtype = site.type().dtype;
  const auto call = reduced_call(graph, site, dims);
  if (!call || !only_first_used(site) || graph.type(*call->operand.value()).dtype != dtype) return std::nullopt;
  PrimitiveBuilder build(graph, site, computation_dtype(dtype));
  const Arg joined = build.reduce(dtype == DType::b8 ? booleans : numbers, build.wide(call->operand), call->dims);
  return only_first(site, build.result(joined, site.type()));
}

std::optional<Results> largest(Graph& graph, const CallSite& site, const Arg& dims) {
  return extreme(graph, site, dims, "max", "any");
}
std::optional<Results> smallest(Graph& graph, const CallSite& site, const Arg& dims) {
  return extreme(graph, site, dims, "min", "all");
}

/// any, all: NaN counts as true. The result is b8, of u8 it is u8.
std::optional<Results> logical(Graph& graph, const CallSite& site, const Arg& dims, std::string_view name) {
  const auto call = reduced_call(graph, site, dims);
  if (!call) return std::nullopt;
  const DType operand = graph.type(*call->operand.value()).dtype;
  PrimitiveBuilder build(graph, site, computation_dtype(operand));
  const Arg zero = is_float(operand) ? Arg{0.0} : Arg{int64_t{0}};
  const Arg flags = operand == DType::b8 ? call->operand : build.test("ne", {build.wide(call->operand), zero});
  return only_first(site, build.result(build.reduce(name, flags, call->dims), site.type()));
}

std::optional<Results> any(Graph& graph, const CallSite& site, const Arg& dims) {
  return logical(graph, site, dims, "any");
}
std::optional<Results> all(Graph& graph, const CallSite& site, const Arg& dims) {
  return logical(graph, site, dims, "all");
}

/// The order of a norm, the second argument: 2 where it is None.
std::optional<double> order_of(const CallSite& site) {
  if (site.args.size() < 2) return std::nullopt;
  const Arg& arg = site.args[1];
  if (arg.is_none()) return 2.0;
  if (const auto* integer = std::get_if<int64_t>(&arg.data)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&arg.data)) return *real;
  return std::nullopt;
}

/// linalg_vector_norm(self, ord, dim, keepdim, dtype), norm(self, p, dim, keepdim, dtype)
std::optional<Results> vector_norm(Graph& graph, const CallSite& site, const Arg& dims) {
  const auto order = order_of(site);
  const bool infinite = order && std::isinf(*order);
  if (!order || (!infinite && *order != 0 && *order != 1 && *order != 2)) return std::nullopt;
  const DType dtype = site.type().dtype;
  const auto call = reduced_call(graph, site, dims);
  if (!call || !is_float(dtype)) return std::nullopt;

  PrimitiveBuilder build(graph, site, computation_dtype(dtype));
  const Arg x = build.rounded(call->operand, dtype);
  if (infinite) {
    const Arg joined = build.reduce(*order > 0 ? "max" : "min", build.op("abs", {x}), call->dims);
    return only_first(site, build.result(joined, site.type()));
  }
  const Arg term = *order == 0   ? build.wide(build.test("ne", {x, {0.0}}))
                   : *order == 1 ? build.op("abs", {x})
                                 : build.op("mul", {x, x});
  const Arg joined = build.reduce("sum", term, call->dims);
  return only_first(site, build.result(*order == 2 ? build.op("sqrt", {joined}) : joined, site.type()));
}

constexpr std::array reduction_rows = {
    RuleRow{"aten::sum", whole<sum>},
    RuleRow{"aten::sum.dim_IntList", along<sum, 1>},
    RuleRow{"aten::prod", whole<prod>},
    RuleRow{"aten::prod.dim_int", along<prod, 1>},
    RuleRow{"aten::mean", whole<mean>},
    RuleRow{"aten::mean.dim", along<mean, 1>},
    RuleRow{"aten::amax", along<largest, 1>},
    RuleRow{"aten::max", whole<largest>},
    RuleRow{"aten::max.dim", along<largest, 1>},
    RuleRow{"aten::amin", along<smallest, 1>},
    RuleRow{"aten::min", whole<smallest>},
    RuleRow{"aten::min.dim", along<smallest, 1>},
    RuleRow{"aten::any", whole<any>},
    RuleRow{"aten::any.dim", along<any, 1>},
    RuleRow{"aten::any.dims", along<any, 1>},
    RuleRow{"aten::all", whole<all>},
    RuleRow{"aten::all.dim", along<all, 1>},
    RuleRow{"aten::all.dims", along<all, 1>},
    RuleRow{"aten::linalg_vector_norm", along<vector_norm, 2>},
    RuleRow{"aten::norm.Scalar", whole<vector_norm>},
    RuleRow{"aten::norm.ScalarOpt_dtype", whole<vector_norm>},
    RuleRow{"aten::norm.ScalarOpt_dim", along<vector_norm, 2>},
    RuleRow{"aten::norm.ScalarOpt_dim_dtype", along<vector_norm, 2>},
};

}  // namespace

std::span<const RuleRow> reduction_rules() { return reduction_rows; }

}  // namespace sinter::passes
