#include "compiler/ir/graph.h"

#include <algorithm>

#include "compiler/support/errors.h"

namespace sinter::ir {

NodeId Graph::add(Payload payload, std::vector<Arg> args, std::vector<Type> result_types, ScopeId scope) {
  const NodeId id{static_cast<uint32_t>(nodes_.size())};
  std::vector<ValueId> results;
  results.reserve(result_types.size());
  for (Type& type : result_types) {
    results.push_back({static_cast<uint32_t>(values_.size())});
    values_.push_back({std::move(type), id, {}, std::nullopt});
  }
  nodes_.push_back({std::move(payload), std::move(args), std::move(results), scope});
  order_.push_back(id);
  return id;
}

ValueId Graph::add1(Payload payload, std::vector<Arg> args, Type type, ScopeId scope) {
  std::vector<Type> types;
  types.push_back(std::move(type));
  return node(add(std::move(payload), std::move(args), std::move(types), scope)).results[0];
}

ScopeId Graph::scope(Scope scope) {
  std::string key = scope.module + '\n' + scope.source;
  const auto [entry, added] = scope_ids_.try_emplace(std::move(key), ScopeId{static_cast<uint32_t>(scopes_.size())});
  if (added) scopes_.push_back(std::move(scope));
  return entry->second;
}

std::vector<uint32_t> use_counts(const Graph& graph) {
  std::vector<uint32_t> counts(graph.value_count(), 0);
  const auto count = [&](const ValueId& value) { ++counts[value.index]; };
  for (NodeId id : graph.order()) {
    for (const Arg& arg : graph.node(id).args) for_each_value(arg, count);
  }
  for (const ValueId& output : graph.outputs) count(output);
  return counts;
}

void replace_uses(Graph& graph, const std::unordered_map<ValueId, ValueId>& replacements) {
  if (replacements.empty()) return;
  const auto replace = [&](ValueId& value) {
    size_t steps = 0;
    for (auto next = replacements.find(value); next != replacements.end(); next = replacements.find(value)) {
      if (++steps > replacements.size()) throw InternalError("ir", "a value is replaced by itself");
      value = next->second;
    }
  };
  for (NodeId id : graph.order()) {
    for (Arg& arg : graph.node(id).args) for_each_value(arg, replace);
    for (const ValueId result : graph.node(id).results) {
      if (auto& alias = graph.value(result).alias) replace(alias->base);
    }
  }
  for (ValueId& output : graph.outputs) replace(output);
}

std::optional<std::vector<Dim>> broadcast(std::span<const Dim> a, std::span<const Dim> b) {
  if (a.size() < b.size()) std::swap(a, b);
  std::vector<Dim> sizes(a.begin(), a.end());
  const size_t lead = a.size() - b.size();
  for (size_t d = 0; d < b.size(); ++d) {
    Dim& size = sizes[lead + d];
    if (b[d] == size || b[d] == Dim(1)) continue;
    if (size != Dim(1)) return std::nullopt;
    size = b[d];
  }
  return sizes;
}

}  // namespace sinter::ir
