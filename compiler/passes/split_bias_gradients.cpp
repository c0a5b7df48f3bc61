#include "compiler/passes/split_bias_gradients.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

bool is_split(const Graph& graph, std::span<const uint32_t> uses, const Node& node) {
  if (call_named(node, "aten::convolution_backward", convolution_backward_arguments) == nullptr) return false;
  const auto* mask = std::get_if<ArgList>(&node.args[convolution_backward_mask].data);
  const ValueId* gradient = node.args[0].value();
  if (mask == nullptr || mask->size() != 3 || gradient == nullptr || !(mask->back() == Arg{true})) return false;
  const auto given = static_cast<size_t>(std::ranges::count(*mask, Arg{true}));
  if (node.results.size() != given || uses[node.results.back().index] == 0) return false;
  const Type& from = graph.type(*gradient);
  const Type& bias = graph.type(node.results.back());
  return from.rank() > 2 && bias.rank() == 1 && bias.dtype == from.dtype;
}

/// Adds the sum over all dims but that of the channels.
ValueId add_sum(Rewriter& rewrite, const Node& node) {
  const size_t rank = rewrite.old().type(*node.args[0].value()).rank();
  ArgList dims{{int64_t{0}}};
  for (size_t dim = 2; dim < rank; ++dim) dims.push_back({static_cast<int64_t>(dim)});
  std::vector<Arg> args{{rewrite.get(*node.args[0].value())}, {std::move(dims)}, {false}, {}};
  return rewrite.add(Call{"aten::sum.dim_IntList", {}, {}, false, false}, std::move(args),
                     rewrite.old().type(node.results.back()), node.scope);
}

/// Adds the call for the gradients that are left.
void add_rest(Rewriter& rewrite, const Node& node) {
  const auto left = std::span(node.results).first(node.results.size() - 1);
  if (left.empty()) return;
  std::vector<Arg> args = rewrite.map_args(node.args);
  std::get<ArgList>(args[convolution_backward_mask].data).back() = {false};
  std::vector<Type> types;
  for (const ValueId result : left) types.push_back(rewrite.old().type(result));
  Graph& next = rewrite.next();
  const NodeId rest = next.add(node.payload, std::move(args), std::move(types), rewrite.map_scope(node.scope));
  for (size_t i = 0; i < left.size(); ++i) rewrite.set(left[i], next.node(rest).results[i]);
}

}  // namespace

PassResult split_bias_gradients(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda) return {};
  const std::vector<uint32_t> uses = use_counts(graph);
  return rewrite_nodes(graph, [&](Rewriter& rewrite, const Node& node) {
    if (!is_split(graph, uses, node)) return false;
    rewrite.set(node.results.back(), add_sum(rewrite, node));
    add_rest(rewrite, node);
    return true;
  });
}

}  // namespace sinter::passes
