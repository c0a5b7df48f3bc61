#include "compiler/passes/frozen.h"

#include <algorithm>

#include "compiler/passes/effects.h"
#include "compiler/passes/view_source.h"

namespace sinter::passes {

using namespace ir;

std::vector<bool> frozen_nodes(const Graph& graph) {
  std::vector<bool> owned_by_caller(graph.value_count(), false);
  for (ValueId output : graph.outputs) owned_by_caller[view_source(graph, output).base.index] = true;

  std::vector<bool> frozen(graph.node_count(), false);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.as<State>()) frozen[id.index] = true;
    if (node.as<State>() || node.as<Input>() || node.as<Constant>() || has_effect(node)) continue;
    bool from_state = true;
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) { from_state &= frozen[graph.value(value).producer.index]; });
    }
    const bool kept = std::none_of(node.results.begin(), node.results.end(), [&](ValueId result) {
      return owned_by_caller[result.index] || graph.value(result).alias.has_value();
    });
    frozen[id.index] = from_state && kept;
  }
  return frozen;
}

}  // namespace sinter::passes
