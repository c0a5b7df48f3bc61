#include "compiler/passes/schedule.h"

#include <functional>
#include <queue>
#include <set>

#include "compiler/ir/view_source.h"
#include "compiler/passes/effects.h"
#include "compiler/support/errors.h"

namespace sinter::passes {

using namespace ir;

std::vector<NodeId> unit_order(const Graph& graph, const std::vector<NodeId>& leaders) {
  std::vector<std::set<NodeId>> next(graph.node_count());
  std::vector<size_t> waits(graph.node_count(), 0);
  std::vector<size_t> last(graph.node_count(), 0);  // a unit stands where its last member stood
  const auto depend = [&](NodeId producer, NodeId consumer) {
    const NodeId from = leaders[producer.index];
    const NodeId to = leaders[consumer.index];
    if (from != to && next[from.index].insert(to).second) ++waits[to.index];
  };
  std::set<NodeId> units;
  NodeId last_effect;
  for (size_t position = 0; position < graph.order().size(); ++position) {
    const NodeId id = graph.order()[position];
    const Node& node = graph.node(id);
    if (node.as<View>()) continue;
    units.insert(leaders[id.index]);
    last[leaders[id.index].index] = position;
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) { depend(graph.value(view_source(graph, value).base).producer, id); });
    }
    if (!has_effect(node)) continue;
    if (last_effect.valid()) depend(last_effect, id);
    last_effect = id;
  }

  using Ready = std::pair<size_t, NodeId>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (NodeId unit : units) {
    if (waits[unit.index] == 0) ready.emplace(last[unit.index], unit);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId unit = ready.top().second;
    ready.pop();
    order.push_back(unit);
    for (NodeId consumer : next[unit.index]) {
      if (--waits[consumer.index] == 0) ready.emplace(last[consumer.index], consumer);
    }
  }
  if (order.size() != units.size()) throw InternalError("fuse", "regions depend on each other in a circle");
  return order;
}

}  // namespace sinter::passes
