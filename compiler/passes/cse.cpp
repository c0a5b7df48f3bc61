#include "compiler/passes/cse.h"

#include <string>
#include <unordered_map>

#include "compiler/passes/bodies.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/node_key.h"
#include "compiler/passes/ownership.h"
#include "compiler/support/planted.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// What a node computes; empty for nodes that are never merged.
std::string key_of(const Graph& graph, const Node& node) {
  const bool keeps_its_place = node.as<Call>() != nullptr && has_effect(node) && !planted(Bug::random_calls_merged);
  return keeps_its_place ? std::string() : node_key(graph, node, node.args);
}

int64_t merge_equal(Graph& graph) {
  Ownership ownership(graph);
  std::unordered_map<std::string, NodeId> known;
  std::unordered_map<ValueId, ValueId> replacements;
  std::vector<NodeId> order;
  for (NodeId id : graph.order()) {
    Node& node = graph.node(id);
    for (Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId& value) {
        if (const auto other = replacements.find(value); other != replacements.end()) value = other->second;
      });
    }
    const std::string key = key_of(graph, node);
    const auto [entry, added] = known.try_emplace(key, id);
    bool merge = !key.empty() && !added;
    for (size_t i = 0; merge && i < node.results.size(); ++i) {
      merge = ownership.can_replace(node.results[i], graph.node(entry->second).results[i]);
    }
    if (!merge) {
      order.push_back(id);
      continue;
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      const ValueId kept = graph.node(entry->second).results[i];
      ownership.replaced(node.results[i], kept);
      replacements[node.results[i]] = kept;
    }
  }
  replace_uses(graph, replacements);
  graph.set_order(std::move(order));
  return static_cast<int64_t>(replacements.size());
}

}  // namespace

PassResult cse(Graph& graph, const PassContext&) {
  PassResult result;
  result.changes += rewrite_bodies(graph, merge_equal);
  result.changes += merge_equal(graph);
  return result;
}

}  // namespace sinter::passes
