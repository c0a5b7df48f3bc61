#include "compiler/passes/cse.h"

#include <string>
#include <unordered_map>

#include "compiler/ir/print.h"
#include "compiler/passes/bodies.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/ownership.h"
#include "compiler/support/planted.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// What a node computes, as text; empty for nodes that are never merged.
std::string key_of(const Graph& graph, const Node& node) {
  std::string key;
  if (const auto* call = node.as<Call>()) {
    if (has_effect(node) && !planted(Bug::random_calls_merged)) return {};
    key = call->op;
  } else if (const auto* primitive = node.as<Primitive>()) {
    key = row(primitive->op).name;
  } else if (const auto* reduce = node.as<Reduce>()) {
    key = "reduce " + std::string(row(reduce->op).name);
    for (const uint32_t dim : reduce->dims) key += "," + std::to_string(dim);
  } else if (const auto* join = node.as<Join>()) {
    key = "join " + std::to_string(join->dim);
  } else if (const auto* view = node.as<View>()) {
    key = "view " + std::to_string(view->offset);
  } else {
    return {};
  }
  for (const Arg& arg : node.args) key += " " + ir::to_string(arg);
  for (ValueId result : node.results) {
    if (graph.value(result).alias) return {};
    const Type& type = graph.type(result);
    key += " " + std::string(name(type.dtype)) + to_string(type.device);
    for (const Dim& size : type.sizes) key += "," + to_string(size);
    for (const Dim& stride : type.strides) key += ";" + to_string(stride);
  }
  return key;
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
