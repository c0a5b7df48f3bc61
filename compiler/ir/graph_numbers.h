#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::ir {

/// What a number of a captured graph says.
struct NumberPlace {
  enum class Kind : uint8_t { argument, size, stride, offset };
  Kind kind = Kind::argument;
  uint32_t position = 0;  ///< of the argument or the result
  uint32_t index = 0;     ///< in the argument's lists, flattened; of the dim
};

/// Calls `visit(place, number)` for every whole number among the arguments of a node: `int64_t&`, const for const args.
template <class A, class Visit>
void visit_argument_numbers(A& arg, NumberPlace& place, Visit& visit) {
  if (auto* number = std::get_if<int64_t>(&arg.data)) {
    visit(place, *number);
    ++place.index;
  } else if (auto* list = std::get_if<ArgList>(&arg.data)) {
    for (auto& element : *list) visit_argument_numbers(element, place, visit);
  }
}

/// Calls `visit(place, number)` for every number of a node that sizes may decide: whole numbers among its arguments
/// (`int64_t&`), then by result its sizes, its strides (`Dim&`) and where it lies in its base (`int64_t&`).
template <class G, class Visit>
void visit_numbers(G& graph, NodeId id, Visit&& visit) {
  auto& node = graph.node(id);
  for (uint32_t i = 0; i < node.args.size(); ++i) {
    NumberPlace place{NumberPlace::Kind::argument, i, 0};
    visit_argument_numbers(node.args[i], place, visit);
  }
  for (uint32_t i = 0; i < node.results.size(); ++i) {
    auto& value = graph.value(node.results[i]);
    for (uint32_t d = 0; d < value.type.sizes.size(); ++d) {
      visit(NumberPlace{NumberPlace::Kind::size, i, d}, value.type.sizes[d]);
    }
    for (uint32_t d = 0; d < value.type.strides.size(); ++d) {
      visit(NumberPlace{NumberPlace::Kind::stride, i, d}, value.type.strides[d]);
    }
    if (value.alias) visit(NumberPlace{NumberPlace::Kind::offset, i, 0}, value.alias->offset);
  }
}

/// Every number of a static captured graph, in the order of the nodes. Captures of one program that differ in numbers
/// alone have them in the same places.
using Numbers = std::vector<int64_t>;
[[nodiscard]] Numbers numbers_of(const Graph& graph);

/// "argument 1 of aten::view", "size[2] of result 0 of aten::convolution at layer1.conv".
[[nodiscard]] std::string describe(const Graph& graph, NodeId node, const NumberPlace& place);

}  // namespace sinter::ir
