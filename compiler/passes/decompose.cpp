#include "compiler/passes/decompose.h"

#include <algorithm>

#include "compiler/passes/aten.h"
#include "compiler/passes/decompose_rules.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Results a structural rule gives may be used alone: the others must be unused.
bool only_first_used(const Node& node, const std::vector<uint32_t>& uses) {
  return std::all_of(node.results.begin() + 1, node.results.end(),
                     [&](ValueId result) { return uses[result.index] == 0; });
}

std::optional<ValueId> lower_call(Graph& graph, const CallSite& site) {
  if (const StructuralRule rule = structural_rule(site.op)) {
    if (const auto value = rule(graph, site)) return value;
  }
  return expand_call(graph, site.op, site.args, site.type, site.scope);
}

}  // namespace

PassResult decompose(Graph& graph, const PassContext&) {
  PassResult result;
  const std::vector<uint32_t> uses = use_counts(graph);
  Rewriter rewrite(graph);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Call* call = node.as<Call>();
    const bool candidate = call != nullptr && !call->random && !call->impure && !node.results.empty() &&
                           !graph.value(node.results[0]).alias && only_first_used(node, uses);
    if (candidate) {
      const std::vector<Arg> args = rewrite.map_args(node.args);
      const CallSite site{call->op, args, graph.type(node.results[0]), rewrite.map_scope(node.scope)};
      if (const auto value = lower_call(rewrite.next(), site)) {
        rewrite.set(node.results[0], *value);
        ++result.changes;
        continue;
      }
    }
    rewrite.copy(id);
  }
  Graph next = rewrite.finish();
  graph = std::move(next);
  return result;
}

}  // namespace sinter::passes
