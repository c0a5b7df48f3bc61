#include <array>
#include <cmath>

#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/pointwise.h"

/// Calls whose result depends on where an element lies: counting, triangles. Code for the CPU asks no point where it
/// lies but for joins, and LibTorch's calls stay there.
namespace sinter::passes {
namespace {

using namespace ir;

/// Integers up to here are floats.
constexpr double most_counted = double{1 << 24};

class Counting {
 public:
  Counting(Graph& graph, const CallSite& site) : graph_(graph), site_(site) {}

  /// True where a kernel can write the result.
  [[nodiscard]] bool writes_result() const {
    return site_.context.device.backend == Backend::cuda && only_first_used(site_) &&
           site_.type().device.kind == Device::Kind::cuda && is_kernel_result(graph_, site_.type()) &&
           site_.type().numel() > 0;
  }

  Arg add(std::string_view op, std::vector<Arg> args, Type type) {
    return {graph_.add1(Primitive{op_named(op)}, std::move(args), std::move(type), site_.scope)};
  }

  /// 0, 1, ... along the first dim of these sizes.
  Arg counted(std::vector<Dim> sizes) {
    Type type = contiguous(DType::i64, std::move(sizes), site_.type().device);
    return {graph_.add1(Position{0}, {}, std::move(type), site_.scope)};
  }

 private:
  Graph& graph_;
  const CallSite& site_;
};

/// A number that is an integer; nothing for others, and for no number.
std::optional<int64_t> integral_number(const Arg& arg) {
  if (const auto integer = integer_in(arg)) return integer;
  const auto* real = std::get_if<double>(&arg.data);
  const bool is_whole = real != nullptr && std::abs(*real) < most_counted && std::trunc(*real) == *real;
  return is_whole ? std::optional(static_cast<int64_t>(*real)) : std::nullopt;
}

/// start, start + step, ...: integers, which floats hold too.
std::optional<Results> counted(Graph& graph, const CallSite& site, const Arg& start, const Arg& step) {
  Counting make(graph, site);
  const auto begin = integral_number(start), by = integral_number(step);
  if (!begin || !by || !make.writes_result() || site.type().rank() != 1) return std::nullopt;
  const auto farthest = static_cast<double>(*by) * static_cast<double>(site.type().numel());
  if (std::abs(static_cast<double>(*begin)) + std::abs(farthest) > most_counted) return std::nullopt;
  const Type integers = contiguous(DType::i64, site.type().sizes, site.type().device);
  Arg value = make.counted(site.type().sizes);
  if (*by != 1) value = make.add("mul", {value, Arg{*by}}, integers);
  if (*begin != 0) value = make.add("add", {value, Arg{*begin}}, integers);
  if (site.type() != integers) value = make.add("cast", {value}, site.type());
  return only_first(site, *value.value());
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
  Counting make(graph, site);
  const auto diagonal = site.args.size() == 2 ? integer_in(site.args[1]) : std::nullopt;
  if (!diagonal || !make.writes_result() || !is_kernel_operand(graph, site.args[0])) return std::nullopt;
  const Arg& matrix = site.args[0];
  const Type& result = site.type();
  if (matrix.value() == nullptr || graph.type(*matrix.value()).sizes != result.sizes || result.rank() < 2) {
    return std::nullopt;
  }
  if (graph.type(*matrix.value()).dtype != result.dtype) return std::nullopt;
  const Dim rows = result.sizes[result.rank() - 2], columns = result.sizes[result.rank() - 1];
  Type distances = contiguous(DType::i64, {rows, columns}, result.device);
  Type chosen = distances;
  chosen.dtype = DType::b8;
  const Arg apart = make.add("sub", {make.counted({columns}), make.counted({rows, 1})}, std::move(distances));
  const Arg inside = make.add(compares, {apart, Arg{*diagonal}}, std::move(chosen));
  const Arg zero = is_float(result.dtype) ? Arg{0.0} : result.dtype == DType::b8 ? Arg{false} : Arg{int64_t{0}};
  return only_first(site, *make.add("where", {inside, matrix, zero}, result).value());
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
