#include "compiler/ir/graph_numbers.h"

#include <fmt/format.h>

#include "compiler/ir/print.h"

namespace sinter::ir {
namespace {

int64_t value_of(int64_t number) { return number; }
int64_t value_of(const Dim& dim) { return dim.value(); }

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
