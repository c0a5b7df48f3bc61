#include "compiler/passes/dce.h"

#include <algorithm>

#include "compiler/passes/bodies.h"
#include "compiler/passes/live_nodes.h"

namespace sinter::passes {
namespace {

using namespace ir;

int64_t drop_dead(Graph& graph) {
  LiveNodes live = live_nodes(graph);
  const auto dropped = static_cast<int64_t>(graph.order().size() - live.order.size());
  if (dropped > 0) graph.set_order(std::move(live.order));
  return dropped;
}

/// Takes inputs that nothing reads out of a fused body, and the node's args with them.
int64_t drop_unread_inputs(Node& node) {
  Fused& fused = *node.as<Fused>();
  const std::vector<uint32_t> uses = use_counts(*fused.body);
  auto body = std::make_shared<Graph>(*fused.body);
  std::vector<NodeId> order;
  std::vector<Arg> args;
  for (NodeId id : body->order()) {
    auto* input = body->node(id).as<Input>();
    if (input != nullptr && uses[body->node(id).results[0].index] == 0) continue;
    order.push_back(id);
    if (input == nullptr) continue;
    args.push_back(node.args[input->index]);
    input->index = static_cast<uint32_t>(args.size() - 1);
  }
  const auto dropped = static_cast<int64_t>(node.args.size() - args.size());
  if (dropped == 0) return 0;
  body->set_order(std::move(order));
  fused.body = std::move(body);
  node.args = std::move(args);
  return dropped;
}

}  // namespace

PassResult dce(Graph& graph, const PassContext&) {
  PassResult result;
  result.changes += rewrite_bodies(graph, drop_dead);
  for (NodeId id : graph.order()) {
    if (graph.node(id).as<Fused>()) result.changes += drop_unread_inputs(graph.node(id));
  }
  result.changes += drop_dead(graph);
  return result;
}

}  // namespace sinter::passes
