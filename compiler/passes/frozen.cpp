#include "compiler/passes/frozen.h"

#include <algorithm>

#include "compiler/ir/view_source.h"
#include "compiler/passes/effects.h"

namespace sinter::passes {

using namespace ir;

namespace {

constexpr int64_t most_bytes_unasked = int64_t{1} << 20;

bool is_small(const Graph& graph, const Node& node) {
  int64_t bytes = 0;
  for (ValueId result : node.results) bytes += graph.type(result).numel() * bytes_of(graph.type(result).dtype);
  return bytes <= most_bytes_unasked;
}

}  // namespace

std::vector<bool> frozen_nodes(const Graph& graph, bool freeze) {
  std::vector<bool> owned_by_caller(graph.value_count(), false);
  for (ValueId output : graph.outputs) owned_by_caller[view_source(graph, output).base.index] = true;

  std::vector<bool> written(graph.value_count(), false);
  for (NodeId id : graph.order()) {
    if (graph.node(id).as<Write>()) written[graph.node(id).args[0].value()->index] = true;
  }
  std::vector<bool> frozen(graph.node_count(), false);
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.as<State>()) frozen[id.index] = freeze && !written[node.results[0].index];
    if (node.as<State>() || node.as<Input>() || has_effect(node)) continue;
    bool kept = freeze || node.as<View>() || is_small(graph, node);
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) { kept = kept && frozen[graph.value(value).producer.index]; });
    }
    frozen[id.index] = kept && std::none_of(node.results.begin(), node.results.end(), [&](ValueId result) {
                         return owned_by_caller[result.index] || graph.value(result).alias.has_value();
                       });
  }
  return frozen;
}

}  // namespace sinter::passes
