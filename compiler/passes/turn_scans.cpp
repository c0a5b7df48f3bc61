#include "compiler/passes/turn_scans.h"

#include <optional>
#include <utility>

#include "compiler/ir/op.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t shortest_column = 64;  ///< at some 150 ns an element it takes as long as the row's kernel and a copy
constexpr int64_t most_columns = int64_t{1} << 14;  ///< with more, their threads wait for memory together

/// The dim along which a call runs, if it is a scan that a turned one should stand for.
std::optional<size_t> turned_dim(const Graph& graph, const Node& node, Numerics numerics) {
  const bool scan = call_named(node, "aten::cumsum", 3) != nullptr || call_named(node, "aten::cumprod", 3) != nullptr;
  if (!scan || node.args[0].value() == nullptr || graph.value(node.results[0]).alias) return std::nullopt;
  const Type& from = graph.type(*node.args[0].value());
  const Type& to = graph.type(node.results[0]);
  const auto* given = std::get_if<int64_t>(&node.args[1].data);
  if (given == nullptr || from.rank() < 2 || !from.is_static() || !to.is_dense()) return std::nullopt;
  if (!is_kernel_dtype(from.dtype) || !is_kernel_dtype(to.dtype)) return std::nullopt;
  if (is_float(to.dtype) && numerics != Numerics::fast) return std::nullopt;
  const auto rank = static_cast<int64_t>(from.rank());
  const auto dim = static_cast<size_t>(*given < 0 ? *given + rank : *given);
  if (dim + 1 == from.rank() || to.numel() == 0) return std::nullopt;
  const int64_t length = from.sizes[dim].value();
  const int64_t columns = to.numel() / length;
  if (length < shortest_column || columns < 2 || columns > most_columns) return std::nullopt;
  return dim;
}

Type with_dim_last(Type type, size_t dim) {
  std::swap(type.sizes[dim], type.sizes.back());
  std::swap(type.strides[dim], type.strides.back());
  return type;
}

Type packed_rows(const Type& like, DType dtype) { return contiguous(dtype, like.sizes, like.device); }

ValueId turned_scan(Rewriter& rewrite, const Node& node, size_t dim) {
  const ValueId source = rewrite.get(*node.args[0].value());
  const Type from = with_dim_last(rewrite.next().type(source), dim);
  const Type& to = rewrite.old().type(node.results[0]);
  const ValueId seen = rewrite.add(View{0}, {{source}}, from, node.scope);
  const ValueId rows = rewrite.add(Primitive{op_named("cast")}, {{seen}}, packed_rows(from, from.dtype), node.scope);
  std::vector<Arg> args = rewrite.map_args(node.args);
  args[0] = {rows};
  args[1] = {static_cast<int64_t>(from.rank()) - 1};
  const ValueId scanned = rewrite.add(*node.as<Call>(), std::move(args), packed_rows(from, to.dtype), node.scope);
  const ValueId back = rewrite.add(View{0}, {{scanned}}, with_dim_last(packed_rows(from, to.dtype), dim), node.scope);
  return rewrite.add(Primitive{op_named("cast")}, {{back}}, to, node.scope);
}

}  // namespace

PassResult turn_scans(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || context.generic_sizes) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto dim = turned_dim(graph, node, context.numerics);
    return dim ? std::optional(turned_scan(rewrite, node, *dim)) : std::nullopt;
  });
}

}  // namespace sinter::passes
