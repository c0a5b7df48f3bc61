#include "compiler/passes/columns.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/ir/view_source.h"
#include "compiler/passes/aten.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// What calls take as an operand without copying it.
enum class Takes : uint8_t {
  any,     ///< every layout: the op goes through its operand element by element
  rows,    ///< adjacent elements along the last dim
  matrix,  ///< adjacent elements along one of the last two dims, and no overlap along the other: what cuBLAS takes
};

/// Operands of calls of ATen for CUDA whose layout changes neither what the call computes nor the order of the dims of
/// its results in memory.
struct OperandRow {
  std::string_view op;
  size_t first;
  size_t last;
  Takes takes;
};

constexpr std::array operand_rows = {
    OperandRow{"aten::mm", 0, 1, Takes::matrix},
    OperandRow{"aten::addmm", 1, 2, Takes::matrix},
    OperandRow{"aten::bmm", 0, 1, Takes::matrix},
    OperandRow{"aten::baddbmm", 1, 2, Takes::matrix},
    // Results are laid out by the order of the query's strides, or in one order always.
    OperandRow{"aten::scaled_dot_product_attention", 0, 2, Takes::rows},
    OperandRow{"aten::_scaled_dot_product_flash_attention", 0, 2, Takes::rows},
    OperandRow{"aten::_scaled_dot_product_efficient_attention", 0, 2, Takes::rows},
    OperandRow{"aten::_scaled_dot_product_cudnn_attention", 0, 2, Takes::rows},
    // What is written into a cache; the result is like the cache.
    OperandRow{scatter, 1, 1, Takes::any},
    OperandRow{"aten::index_copy", 3, 3, Takes::any},
    OperandRow{"aten::index_put", 2, 2, Takes::any},
};

bool is_matrix(const Type& type) {
  if (type.rank() < 2) return false;
  const auto sizes = type.static_sizes();
  const auto strides = type.static_strides();
  const size_t column = type.rank() - 1;
  const size_t row = type.rank() - 2;
  return (strides[column] == 1 && strides[row] >= sizes[column]) ||
         (strides[row] == 1 && strides[column] >= sizes[row]);
}

bool takes(Takes takes, const Type& type) {
  if (takes == Takes::any) return true;
  return takes == Takes::matrix ? is_matrix(type) : type.rank() > 0 && type.strides.back() == Dim(1);
}

/// Asks with the operand's own type: among columns, strides of 1 stay and others only grow.
bool call_takes(const Graph& graph, const Node& node, const Call& call, size_t position, const Type& operand) {
  if (call.impure || node.args[position].value() == nullptr) return false;
  if (std::ranges::any_of(node.results, [&](ValueId result) { return graph.value(result).alias.has_value(); })) {
    return false;
  }
  return std::ranges::any_of(operand_rows, [&](const OperandRow& row) {
    return call.op == row.op && row.first <= position && position <= row.last && takes(row.takes, operand);
  });
}

ColumnsNeed need_of_use(const Graph& graph, const Node& node, size_t position, ValueId operand, int64_t width) {
  if (node.as<Write>()) return ColumnsNeed::fused_copy;  // a kernel writes it where the write-back goes
  const bool kept = keeps_to_columns({graph.type(operand), view_source(graph, operand).offset}, width);
  if (is_computed(node)) return kept ? ColumnsNeed::nothing : ColumnsNeed::fused_copy;
  const auto* call = node.as<Call>();
  const bool taken = kept && call != nullptr && call_takes(graph, node, *call, position, graph.type(operand));
  return taken ? ColumnsNeed::nothing : ColumnsNeed::own_copy;
}

}  // namespace

bool keeps_to_columns(const PlacedView& view, int64_t width) {
  int64_t last = view.offset % width;  // the greatest column that is read
  for (size_t dim = 0; dim < view.type.rank(); ++dim) {
    const int64_t stride = view.type.strides[dim].value();
    const int64_t steps = view.type.sizes[dim].value() - 1;
    if (steps < 0) return false;
    if (steps > 0 && stride % width != 0) last += steps * stride;
  }
  return last < width;
}

PlacedView among_columns(PlacedView view, const Columns& columns) {
  const auto moved = [&](int64_t distance) {
    return distance / columns.width * columns.pitch + distance % columns.width;
  };
  view.offset = moved(view.offset) + columns.begin;
  for (Dim& stride : view.type.strides) stride = moved(stride.value());
  return view;
}

std::vector<ColumnsNeed> columns_needs(const Graph& graph, const std::vector<bool>& matrices) {
  std::vector<ColumnsNeed> needs(graph.value_count(), ColumnsNeed::nothing);
  std::vector<bool> called(graph.value_count(), false);
  const auto use = [&](ValueId base, ColumnsNeed need) { needs[base.index] = std::max(needs[base.index], need); };
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.as<View>()) continue;
    for (size_t position = 0; position < node.args.size(); ++position) {
      for_each_value(node.args[position], [&](ValueId value) {
        const ValueId base = view_source(graph, value).base;
        if (!matrices[base.index]) return;
        use(base, need_of_use(graph, node, position, value, graph.type(base).sizes[1].value()));
        called[base.index] = called[base.index] || node.as<Call>() != nullptr;
      });
    }
  }
  for (const ValueId output : graph.outputs) use(view_source(graph, output).base, ColumnsNeed::own_copy);
  for (uint32_t value = 0; value < needs.size(); ++value) {
    // A copy that is there is what calls are given, too.
    if (needs[value] == ColumnsNeed::fused_copy && called[value]) needs[value] = ColumnsNeed::own_copy;
  }
  return needs;
}

}  // namespace sinter::passes
