#include <array>
#include <cmath>

#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/primitive_builder.h"

/// Calls whose result depends on where an element lies: counting, triangles. Code for the CPU asks no point where it
/// lies but for joins, and LibTorch's calls stay there.
namespace sinter::passes {
namespace {

using namespace ir;

/// Integers up to here are floats.
constexpr double most_counted = double{1 << 24};

/// True where a kernel for CUDA can write the result.
bool is_for_cuda(const Graph& graph, const CallSite& site) {
  return site.context.device.backend == Backend::cuda && writes_first_result(graph, site);
}

/// A number that is an integer; nothing for others, and for no number.
std::optional<int64_t> integral_number(const Arg& arg) {
  if (const auto integer = integer_in(arg)) return integer;
  const auto* real = std::get_if<double>(&arg.data);
  const bool is_whole = real != nullptr && std::abs(*real) < most_counted && std::trunc(*real) == *real;
  return is_whole ? std::optional(static_cast<int64_t>(*real)) : std::nullopt;
}

/// start, start + step, ...: integers, which floats hold too.
std::optional<Results> counted(Graph& graph, const CallSite& site, const Arg& start, const Arg& step) {
  const auto begin = integral_number(start), by = integral_number(step);
  if (!begin || !by || !is_for_cuda(graph, site) || site.type().rank() != 1) return std::nullopt;
  const auto farthest = static_cast<double>(*by) * static_cast<double>(site.type().numel());
  if (std::abs(static_cast<double>(*begin)) + std::abs(farthest) > most_counted) return std::nullopt;
  PrimitiveBuilder build(graph, site, DType::i64);
  Arg value = build.position(site.type().sizes, 0);
  if (*by != 1) value = build.op("mul", {value, Arg{*by}});
  if (*begin != 0) value = build.op("add", {value, Arg{*begin}});
  return only_first(site, build.result(build.cast(value, site.type().dtype), site.type()));
}

/// arange(end, ...)
std::optional<Results> arange_to(Graph& graph, const CallSite& site) {
  return counted(graph, site, Arg{int64_t{0}}, Arg{int64_t{1}});
}

/// arange.start(start, end, ...)
std::optional<Results> arange_from(Graph& graph, const CallSite& site) {
  return site.args.empty() ? std::nullopt : counted(graph, site, site.args[0], Arg{int64_t{1}});
}

/// arange.start_step(start, end, step, ...)
std::optional<Results> arange_by(Graph& graph, const CallSite& site) {
  return site.args.size() < 3 ? std::nullopt : counted(graph, site, site.args[0], site.args[2]);
}

/// The elements of matrices whose column less their row `compares` with the diagonal; zeros elsewhere.
std::optional<Results> triangle(Graph& graph, const CallSite& site, std::string_view compares) {
  const auto diagonal = site.args.size() == 2 ? integer_in(site.args[1]) : std::nullopt;
  if (!diagonal || !is_for_cuda(graph, site) || !is_kernel_operand(graph, site.args[0])) return std::nullopt;
  const Arg& matrix = site.args[0];
  const Type& result = site.type();
  if (matrix.value() == nullptr || graph.type(*matrix.value()).sizes != result.sizes || result.rank() < 2) {
    return std::nullopt;
  }
  if (graph.type(*matrix.value()).dtype != result.dtype) return std::nullopt;
  const Dim rows = result.sizes[result.rank() - 2], columns = result.sizes[result.rank() - 1];
  PrimitiveBuilder build(graph, site, DType::i64);
  const Arg apart = build.op("sub", {build.position({columns}, 0), build.position({rows, 1}, 0)});
  const Arg inside = build.test(compares, {apart, Arg{*diagonal}});
  const Arg zero = is_float(result.dtype) ? Arg{0.0} : result.dtype == DType::b8 ? Arg{false} : Arg{int64_t{0}};
  return only_first(site, graph.add1(Primitive{op_named("where")}, {inside, matrix, zero}, result, site.scope));
}

/// triu(self, diagonal)
std::optional<Results> upper(Graph& graph, const CallSite& site) { return triangle(graph, site, "ge"); }
/// tril(self, diagonal)
std::optional<Results> lower(Graph& graph, const CallSite& site) { return triangle(graph, site, "le"); }

constexpr std::array position_rows = {
    RuleRow{"aten::arange", arange_to},
    RuleRow{"aten::arange.start", arange_from},
    RuleRow{"aten::arange.start_step", arange_by},
    RuleRow{"aten::triu", upper},
    RuleRow{"aten::tril", lower},
};

}  // namespace

std::span<const RuleRow> position_rules() { return position_rows; }

}  // namespace sinter::passes
