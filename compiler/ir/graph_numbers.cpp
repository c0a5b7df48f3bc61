#include "compiler/ir/graph_numbers.h"

#include <fmt/format.h>

namespace sinter::ir {
namespace {

int64_t value_of(int64_t number) { return number; }
int64_t value_of(const Dim& dim) { return dim.value(); }

std::string op_name(const Node& node) {
  if (const auto* call = node.as<Call>()) return call->op;
  if (const auto* input = node.as<Input>()) return fmt::format("input {}", input->index);
  if (const auto* state = node.as<State>()) return fmt::format("state {}", state->name);
  if (const auto* content = node.as<Constant>()) return fmt::format("content {}", content->index);
  return "a node";
}

}  // namespace

Numbers numbers_of(const Graph& graph) {
  Numbers numbers;
  for (const NodeId id : graph.order()) {
    visit_numbers(graph, id, [&](const NumberPlace&, const auto& number) { numbers.push_back(value_of(number)); });
  }
  return numbers;
}

std::string describe(const Graph& graph, NodeId id, const NumberPlace& place) {
  const Node& node = graph.node(id);
  std::string where;
  if (node.scope.valid()) {
    const Scope& scope = graph.scope(node.scope);
    const std::string& known = scope.module.empty() ? scope.source : scope.module;
    if (!known.empty()) where = " at " + known;
  }
  switch (place.kind) {
    case NumberPlace::Kind::argument:
      return fmt::format("argument {} of {}{}", place.position, op_name(node), where);
    case NumberPlace::Kind::size:
      return fmt::format("size[{}] of result {} of {}{}", place.index, place.position, op_name(node), where);
    case NumberPlace::Kind::stride:
      return fmt::format("stride[{}] of result {} of {}{}", place.index, place.position, op_name(node), where);
    case NumberPlace::Kind::offset:
      return fmt::format("offset of result {} of {}{}", place.position, op_name(node), where);
  }
  return {};
}

}  // namespace sinter::ir
