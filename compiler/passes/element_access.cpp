#include "compiler/passes/element_access.h"

#include <algorithm>
#include <vector>

namespace sinter::passes {

using namespace ir;

namespace {

/// True where an output that a kernel with reductions stores element by element lies otherwise than the input. The
/// kernel counts each output's elements as they lie, so that at one point it reads the input for this one elsewhere.
bool is_stored_in_another_order(const Graph& body, ValueId input) {
  const auto reduces = [&](NodeId id) { return body.node(id).as<Reduce>() != nullptr; };
  if (std::ranges::none_of(body.order(), reduces)) return false;
  const Type& type = body.type(input);
  return std::ranges::any_of(body.outputs, [&](ValueId output) {
    const Type& stored = body.type(output);
    return stored.sizes == type.sizes && !same_layout(stored, type);
  });
}

}  // namespace

bool reads_elementwise(const Graph& body, size_t index) {
  std::vector<bool> moved(body.value_count(), false);  // read at other elements than the one that is written
  for (auto id = body.order().rbegin(); id != body.order().rend(); ++id) {
    const Node& node = body.node(*id);
    if (node.as<Input>()) continue;
    const ValueId result = node.results[0];
    for (const Arg& arg : node.args) {
      if (arg.value() == nullptr) continue;
      const bool same = node.as<Primitive>() && body.type(*arg.value()).sizes == body.type(result).sizes;
      if (!same || moved[result.index]) moved[arg.value()->index] = true;
    }
  }
  for (NodeId id : body.order()) {
    const Node& node = body.node(id);
    const auto* input = node.as<Input>();
    if (input == nullptr || input->index != index) continue;
    // Without a reduction all outputs have one size. A kernel that reduces stores what has the sizes of its rows by one
    // thread of each, which is the only one to use what it read there.
    const bool in_order = !moved[node.results[0].index] && !is_stored_in_another_order(body, node.results[0]);
    return in_order && std::ranges::any_of(body.outputs, [&](ValueId output) {
             return body.type(output).sizes == body.type(node.results[0]).sizes;
           });
  }
  return false;
}

}  // namespace sinter::passes
