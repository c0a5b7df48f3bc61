#include "compiler/passes/group_rows.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/kernel/nest.h"
#include "compiler/kernel/region.h"
#include "compiler/passes/region.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t fewest_elements = int64_t{1} << 18;  ///< below, a second kernel costs more than it saves
constexpr int64_t fewest_rows = 4;                     ///< of a group, beside which what it gives is little
constexpr int64_t elements_of_multiprocessor = 8192;   ///< that its threads hold of their rows

/// Rows and their elements, of a value whose last dims are a row.
struct Shape {
  int64_t rows = 1;
  int64_t columns = 1;
  bool operator==(const Shape&) const = default;
};

/// The shape whose first `leading` dims are the rows.
Shape shape_of(const Type& type, size_t leading) {
  Shape shape;
  for (size_t d = 0; d < type.rank(); ++d) (d < leading ? shape.rows : shape.columns) *= type.sizes[d].constant();
  return shape;
}

/// How many of the dims, from the first one on, are reduced; nothing where others are.
std::optional<size_t> leading_dims(const std::vector<uint32_t>& dims) {
  const bool leading = !dims.empty() && dims.back() + 1 == dims.size();
  return leading ? std::optional(dims.size()) : std::nullopt;
}

/// The number of dims before those that are reduced, which are the last ones; nothing where others are.
std::optional<size_t> dims_before_row(const Type& operand, const std::vector<uint32_t>& dims) {
  const size_t first = operand.rank() - dims.size();
  const bool last = !dims.empty() && first > 0 && dims.front() == first;
  return last ? std::optional(first) : std::nullopt;
}

/// What `value` is computed from by pointwise operations, element by element, and itself.
std::unordered_set<ValueId> elements_behind(const Graph& graph, ValueId value) {
  const int64_t elements = graph.type(value).numel();
  std::unordered_set<ValueId> seen;
  std::vector<ValueId> stack{value};
  while (!stack.empty() && seen.size() < max_region_values) {
    const ValueId base = kernel::region_operand(graph, stack.back()).base;
    stack.pop_back();
    if (graph.type(base).numel() != elements || !seen.insert(base).second) continue;
    const Node& node = graph.producer(base);
    if (node.as<Primitive>() == nullptr) continue;
    for (const Arg& arg : node.args) {
      if (arg.value() != nullptr) stack.push_back(*arg.value());
    }
  }
  return seen;
}

/// By value: as rows of what lengths its elements are reduced.
using ReducedRows = std::unordered_map<ValueId, std::vector<int64_t>>;

ReducedRows reduced_rows(const Graph& graph) {
  ReducedRows rows;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const auto* reduce = node.as<Reduce>();
    if (reduce == nullptr) continue;
    const ValueId operand = *node.args[0].value();
    const auto leading = dims_before_row(graph.type(operand), reduce->dims);
    if (!leading) continue;
    const int64_t columns = shape_of(graph.type(operand), *leading).columns;
    for (const ValueId value : elements_behind(graph, operand)) rows[value].push_back(columns);
  }
  return rows;
}

/// Into how many groups rows go: about as many as are under way at one time. A divisor, so that all have as many rows.
std::optional<int64_t> groups_of(const Shape& shape, const DeviceInfo& device) {
  const int64_t wanted = std::max<int64_t>(1, device.multiprocessors * elements_of_multiprocessor / shape.columns);
  std::optional<int64_t> below, above;
  const auto look_at = [&](int64_t groups) {
    if (shape.rows / groups < fewest_rows) return;
    if (groups <= wanted) below = std::max(below.value_or(1), groups);
    if (groups > wanted) above = std::min(above.value_or(groups), groups);
  };
  for (int64_t divisor = 1; divisor * divisor <= shape.rows; ++divisor) {
    if (shape.rows % divisor != 0) continue;
    look_at(divisor);
    look_at(shape.rows / divisor);
  }
  if (below && *below * 2 > wanted) return below;
  return above && *above < wanted * 2 ? above : std::nullopt;
}

std::optional<int64_t> groups_of(const Graph& graph, const Node& node, const ReducedRows& reduced,
                                 const DeviceInfo& device) {
  const auto* reduce = node.as<Reduce>();
  const auto leading = reduce == nullptr ? std::nullopt : leading_dims(reduce->dims);
  if (!leading) return std::nullopt;
  const ValueId operand = *node.args[0].value();
  const Type& type = graph.type(operand);
  const Shape shape = shape_of(type, *leading);
  const bool fits =
      type.is_contiguous() && type.numel() >= fewest_elements && shape.columns <= kernel::longest_row_of_group;
  if (!fits || *leading == type.rank()) return std::nullopt;
  for (const ValueId value : elements_behind(graph, operand)) {
    const auto found = reduced.find(value);
    if (found == reduced.end() || std::ranges::find(found->second, shape.columns) == found->second.end()) continue;
    return groups_of(shape, device);
  }
  return std::nullopt;
}

/// The sum of `node` in two steps; a value of its result's type.
ValueId in_groups(Rewriter& rewrite, const Node& node, int64_t groups) {
  const Reduce& reduce = *node.as<Reduce>();
  const ValueId operand = rewrite.get(*node.args[0].value());
  const Type& type = rewrite.old().type(*node.args[0].value());
  const size_t leading = reduce.dims.size();
  std::vector<Dim> sizes{groups, shape_of(type, leading).rows / groups};
  sizes.insert(sizes.end(), type.sizes.begin() + static_cast<ptrdiff_t>(leading), type.sizes.end());
  const ValueId grouped = rewrite.add(View{0}, {{operand}}, contiguous(type.dtype, sizes, type.device), node.scope);
  sizes[1] = 1;
  const ValueId parts =
      rewrite.add(Reduce{reduce.op, {1}}, {{grouped}}, contiguous(type.dtype, sizes, type.device), node.scope);
  sizes[0] = 1;
  const ValueId whole =
      rewrite.add(Reduce{reduce.op, {0}}, {{parts}}, contiguous(type.dtype, sizes, type.device), node.scope);
  return rewrite.add(View{0}, {{whole}}, rewrite.old().type(node.results[0]), node.scope);
}

}  // namespace

PassResult group_rows(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || context.generic_sizes) return {};
  const ReducedRows reduced = reduced_rows(graph);
  if (reduced.empty()) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto groups = groups_of(graph, node, reduced, context.device);
    return groups ? std::optional(in_groups(rewrite, node, *groups)) : std::nullopt;
  });
}

}  // namespace sinter::passes
