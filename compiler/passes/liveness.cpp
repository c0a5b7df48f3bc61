#include "compiler/passes/liveness.h"

#include "compiler/ir/view_source.h"

namespace sinter::passes {

using namespace ir;

std::vector<size_t> last_uses(const Graph& graph) {
  const std::vector<NodeId>& order = graph.order();
  std::vector<size_t> last(graph.value_count(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = graph.node(order[i]);
    for (const Arg& arg : node.args) {
      for_each_value(arg, [&](ValueId value) { last[memory_base(graph, value).index] = i; });
    }
    for (ValueId result : node.results) last[memory_base(graph, result).index] = i;
  }
  for (ValueId output : graph.outputs) last[memory_base(graph, output).index] = order.size();
  return last;
}

int64_t memory_bytes(const Type& type) { return type.is_static() ? type.span() * bytes_of(type.dtype) : 0; }

}  // namespace sinter::passes
