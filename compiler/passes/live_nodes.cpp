#include "compiler/passes/live_nodes.h"

#include <algorithm>

#include "compiler/passes/effects.h"

namespace sinter::passes {

using namespace ir;

LiveNodes live_nodes(const Graph& graph) {
  LiveNodes live{{}, use_counts(graph)};
  for (auto id = graph.order().rbegin(); id != graph.order().rend(); ++id) {
    const Node& node = graph.node(*id);
    const bool used = std::any_of(node.results.begin(), node.results.end(),
                                  [&](ValueId result) { return live.uses[result.index] > 0; });
    if (used || node.as<Input>() || must_run(graph, node)) {
      live.order.push_back(*id);
      continue;
    }
    for (const Arg& arg : node.args) for_each_value(arg, [&](ValueId value) { --live.uses[value.index]; });
  }
  std::reverse(live.order.begin(), live.order.end());
  return live;
}

}  // namespace sinter::passes
