#include "compiler/passes/split_reductions.h"

#include <algorithm>
#include <set>
#include <vector>

#include "compiler/ir/op_cost.h"
#include "compiler/kernel/region.h"
#include "compiler/passes/reduction_shape.h"
#include "compiler/passes/region.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// The operand's dims, with the split dim as two: parts, and what a part has.
Type in_parts(Type type, const ReductionSplit& split) {
  const int64_t size = type.sizes[split.dim].constant() / split.parts;
  const Dim stride = type.strides[split.dim];
  type.sizes[split.dim] = size;
  type.sizes.insert(type.sizes.begin() + split.dim, split.parts);
  type.strides.insert(type.strides.begin() + split.dim, stride.constant() * size);
  return type;
}

/// What is left of the operand's dims, in the order in which they lie: rows that are neighbours stay neighbours.
Type kept(const Type& operand, const std::vector<uint32_t>& dims) {
  std::vector<Dim> sizes = operand.sizes;
  for (const uint32_t dim : dims) sizes[dim] = 1;
  return dense_like(operand, std::move(sizes));
}

/// The reduction of `operand` in two steps; a value of the result's type.
ValueId in_two(Rewriter& rewrite, const Node& node, const ReductionSplit& split) {
  const Reduce& reduce = *node.as<Reduce>();
  const ValueId operand = rewrite.get(*node.args[0].value());
  const Type type = in_parts(rewrite.next().type(operand), split);
  const ValueId parts = rewrite.add(View{0}, {{operand}}, type, node.scope);
  std::vector<uint32_t> first, second{split.dim};
  for (const uint32_t dim : reduce.dims) {
    const bool later = std::ranges::binary_search(split.later, dim);
    (later ? second : first).push_back(dim >= split.dim ? dim + 1 : dim);
  }
  std::ranges::sort(second);
  const Type partial = kept(type, first);
  const ValueId joined = rewrite.add(Reduce{reduce.op, first}, {{parts}}, partial, node.scope);
  const Type& result = rewrite.old().type(node.results[0]);
  Type longer = result;
  longer.sizes.insert(longer.sizes.begin() + split.dim, 1);
  longer.strides.insert(longer.strides.begin() + split.dim, longer.strides[split.dim]);
  const ValueId whole = rewrite.add(Reduce{reduce.op, second}, {{joined}}, longer, node.scope);
  return rewrite.add(View{0}, {{whole}}, result, node.scope);
}

/// Instructions that a kernel takes to compute an element of a value from what lies in memory, if it computes all that
/// it can itself.
int64_t instructions_of_element(const Graph& graph, ValueId value) {
  const int64_t elements = graph.type(value).numel();
  int64_t instructions = 0;
  std::set<ValueId> seen;
  std::vector<ValueId> stack{value};
  while (!stack.empty() && seen.size() < max_region_values) {
    const ValueId base = kernel::region_operand(graph, stack.back()).base;
    stack.pop_back();
    const Node& node = graph.producer(base);
    const auto* primitive = node.as<Primitive>();
    if (primitive == nullptr || graph.type(base).numel() < elements || !seen.insert(base).second) continue;
    instructions += instructions_of(primitive->op);
    for (const Arg& arg : node.args) {
      if (arg.value() != nullptr) stack.push_back(*arg.value());
    }
  }
  return instructions;
}

}  // namespace

PassResult split_reductions(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto* reduce = node.as<Reduce>();
    if (reduce == nullptr) return std::nullopt;
    const ValueId operand = *node.args[0].value();
    const auto split =
        reduction_split(graph.type(operand), reduce->dims, context.device, instructions_of_element(graph, operand));
    return split ? std::optional(in_two(rewrite, node, *split)) : std::nullopt;
  });
}

}  // namespace sinter::passes
