#include "compiler/passes/group_rows.h"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/kernel/nest.h"
#include "compiler/kernel/region.h"
#include "compiler/passes/region.h"
#include "compiler/passes/rewriter.h"
#include "compiler/support/ceil_div.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t fewest_elements = int64_t{1} << 18;  ///< below, a second kernel costs more than it saves
constexpr int64_t fewest_rows = 4;                     ///< of a group, beside which what it gives is little
constexpr int64_t elements_of_thread = 4;              ///< of a row, side by side
constexpr int64_t most_blocks = 32;                    ///< of a multiprocessor
constexpr int64_t warp_threads = 32;

/// Rows and their elements, of a value whose last dims are a row.
struct Shape {
  int64_t rows = 1;
  int64_t columns = 1;
  auto operator<=>(const Shape&) const = default;
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

/// Rows dealt to groups: the sizes of the dims that number the groups, and last the rows of one.
struct Groups {
  int64_t count = 1;
  std::vector<Dim> dims;
};

/// That many groups of rows that dims of these sizes number. The dims stay as they are, but for one that is cut;
/// nothing where groups are not whole dims and a part of one more.
std::optional<Groups> along_dims(const std::vector<int64_t>& sizes, int64_t count) {
  Groups groups{.count = count, .dims = {}};
  int64_t rows = 1;
  for (const int64_t size : sizes) rows *= size;
  int64_t left = count;
  for (size_t d = 0; d < sizes.size() && left > 1; ++d) {
    if (left % sizes[d] != 0 && sizes[d] % left != 0) return std::nullopt;
    groups.dims.emplace_back(std::min(sizes[d], left));
    left = std::max<int64_t>(1, left / sizes[d]);
  }
  groups.dims.emplace_back(rows / count);
  return groups;
}

/// Groups that are under way at one time.
int64_t groups_at_once(const Shape& shape, const DeviceInfo& device) {
  const int64_t warps = ceil_div(shape.columns, elements_of_thread * warp_threads);
  const int64_t most_threads = kernel::most_threads_of_groups;
  const int64_t blocks = most_threads / std::min(most_threads, warps * warp_threads);
  return std::max<int64_t>(1, device.multiprocessors * std::min(blocks, most_blocks));
}

/// The largest number of groups up to `wanted`, or the least above it, that `fits`. A divisor, so that all have as many
/// rows.
template <class Fits>
std::optional<int64_t> nearest_groups(int64_t rows, int64_t wanted, Fits fits) {
  std::optional<int64_t> below, above;
  const auto look_at = [&](int64_t groups) {
    if (rows / groups < fewest_rows || !fits(groups)) return;
    if (groups <= wanted) below = std::max(below.value_or(1), groups);
    if (groups > wanted) above = std::min(above.value_or(groups), groups);
  };
  for (int64_t divisor = 1; divisor * divisor <= rows; ++divisor) {
    if (rows % divisor != 0) continue;
    look_at(divisor);
    look_at(rows / divisor);
  }
  if (below && *below * 2 > wanted) return below;
  return above && *above < wanted * 2 ? above : std::nullopt;
}

/// The groups that rows go into: as many as are under way at one time, or about that. Dims of rows stay where some such
/// number lets them: what moves elements between dims is asked for their positions, and would else have to divide.
std::optional<Groups> groups_of(const Shape& shape, const std::vector<int64_t>& sizes, const DeviceInfo& device) {
  const int64_t wanted = groups_at_once(shape, device);
  const auto keeps_dims = [&](int64_t count) { return along_dims(sizes, count).has_value(); };
  if (const auto count = nearest_groups(shape.rows, wanted, keeps_dims)) return along_dims(sizes, *count);
  const auto count = nearest_groups(shape.rows, wanted, [](int64_t) { return true; });
  return count ? std::optional(Groups{.count = *count, .dims = {*count, shape.rows / *count}}) : std::nullopt;
}

/// The rows that `node` sums, if some that it is computed from are reduced too; nothing where it sums no rows.
std::optional<Shape> summed_rows(const Graph& graph, const Node& node, const ReducedRows& reduced) {
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
    const bool is_row =
        found != reduced.end() && std::ranges::find(found->second, shape.columns) != found->second.end();
    if (is_row) return shape;
  }
  return std::nullopt;
}

/// By result: the rows that a reduction sums.
using SummedRows = std::unordered_map<ValueId, Shape>;

SummedRows all_summed_rows(const Graph& graph) {
  const ReducedRows reduced = reduced_rows(graph);
  SummedRows summed;
  if (reduced.empty()) return summed;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (const auto shape = summed_rows(graph, node, reduced)) summed.emplace(node.results[0], *shape);
  }
  return summed;
}

/// How rows of each shape are dealt, by the operand that tells most dims of theirs apart: all sums of such rows alike,
/// or no kernel could hold them.
std::map<Shape, Groups> dealt_rows(const Graph& graph, const SummedRows& summed, const DeviceInfo& device) {
  std::map<Shape, std::vector<int64_t>> finest;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const auto* reduce = node.as<Reduce>();
    const auto found = reduce == nullptr ? summed.end() : summed.find(node.results[0]);
    if (found == summed.end()) continue;
    const Type& operand = graph.type(*node.args[0].value());
    std::vector<int64_t> sizes;
    for (const uint32_t dim : reduce->dims) {
      if (operand.sizes[dim].constant() > 1) sizes.push_back(operand.sizes[dim].constant());
    }
    std::vector<int64_t>& known = finest[found->second];
    if (sizes.size() > known.size()) known = std::move(sizes);
  }
  std::map<Shape, Groups> dealt;
  for (const auto& [shape, sizes] : finest) {
    if (auto groups = groups_of(shape, sizes, device)) dealt.emplace(shape, *std::move(groups));
  }
  return dealt;
}

/// The sum of `node` in two steps; a value of its result's type.
ValueId in_groups(Rewriter& rewrite, const Node& node, const Groups& groups) {
  const Reduce& reduce = *node.as<Reduce>();
  const ValueId operand = rewrite.get(*node.args[0].value());
  const Type& type = rewrite.old().type(*node.args[0].value());
  const auto first_of_row = type.sizes.begin() + static_cast<ptrdiff_t>(reduce.dims.size());
  const auto of_sizes = [&](std::vector<Dim> sizes) {
    sizes.insert(sizes.end(), first_of_row, type.sizes.end());
    return contiguous(type.dtype, sizes, type.device);
  };
  std::vector<Dim> dims = groups.dims;
  const ValueId grouped = rewrite.add(View{0}, {{operand}}, of_sizes(dims), node.scope);
  dims.back() = 1;
  const auto rows_of_group = static_cast<uint32_t>(dims.size() - 1);
  const ValueId sums = rewrite.add(Reduce{reduce.op, {rows_of_group}}, {{grouped}}, of_sizes(dims), node.scope);
  const ValueId parts = rewrite.add(View{0}, {{sums}}, of_sizes({groups.count, 1}), node.scope);
  const ValueId whole = rewrite.add(Reduce{reduce.op, {0}}, {{parts}}, of_sizes({1, 1}), node.scope);
  return rewrite.add(View{0}, {{whole}}, rewrite.old().type(node.results[0]), node.scope);
}

}  // namespace

PassResult group_rows(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || context.generic_sizes) return {};
  const SummedRows summed = all_summed_rows(graph);
  if (summed.empty()) return {};
  const std::map<Shape, Groups> dealt = dealt_rows(graph, summed, context.device);
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto rows = node.as<Reduce>() == nullptr ? summed.end() : summed.find(node.results[0]);
    const auto groups = rows == summed.end() ? dealt.end() : dealt.find(rows->second);
    return groups == dealt.end() ? std::nullopt : std::optional(in_groups(rewrite, node, groups->second));
  });
}

}  // namespace sinter::passes
