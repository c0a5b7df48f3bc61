#include "compiler/passes/decompose.h"

#include <algorithm>

#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// A pure call whose results have memory of their own.
bool is_candidate(const Graph& graph, const Node& node) {
  const Call* call = node.as<Call>();
  return call != nullptr && !call->random && !call->impure && !node.results.empty() &&
         std::none_of(node.results.begin(), node.results.end(),
                      [&](ValueId result) { return graph.value(result).alias.has_value(); });
}

std::vector<ObservedResult> observed(const Graph& graph, const Node& node, const std::vector<uint32_t>& uses) {
  std::vector<ObservedResult> results;
  for (ValueId result : node.results) results.push_back({graph.type(result), uses[result.index] > 0});
  return results;
}

std::optional<Results> lower_call(Graph& graph, const CallSite& site) {
  if (const StructuralRule rule = structural_rule(site.op)) {
    if (auto values = rule(graph, site)) return values;
  }
  if (!only_first_used(site)) return std::nullopt;
  const auto value = expand_call(graph, site.op, site.args, site.type(), site.scope);
  return value ? std::optional(only_first(site, *value)) : std::nullopt;
}

/// True when nodes of the new graph stand for the call now.
bool rewrite_call(Rewriter& rewrite, const Node& node, const std::vector<uint32_t>& uses, const PassContext& context) {
  const std::vector<Arg> args = rewrite.map_args(node.args);
  const std::vector<ObservedResult> results = observed(rewrite.old(), node, uses);
  const CallSite site{node.as<Call>()->op, args, results, rewrite.map_scope(node.scope), context};
  const auto values = lower_call(rewrite.next(), site);
  if (!values) return false;
  for (size_t i = 0; i < results.size(); ++i) {
    if ((*values)[i].valid()) rewrite.set(node.results[i], (*values)[i]);
  }
  return true;
}

}  // namespace

PassResult decompose(Graph& graph, const PassContext& context) {
  PassResult result;
  const std::vector<uint32_t> uses = use_counts(graph);
  Rewriter rewrite(graph);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (is_candidate(graph, node) && rewrite_call(rewrite, node, uses, context)) {
      ++result.changes;
    } else {
      rewrite.copy(id);
    }
  }
  Graph next = rewrite.finish();
  graph = std::move(next);
  return result;
}

}  // namespace sinter::passes
