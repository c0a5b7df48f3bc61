#include "compiler/ir/reading.h"

namespace sinter::ir {

Reading reading_of(const Graph& graph, ValueId value) {
  Reading reading;
  while (graph.value(value).alias) {
    const Node& node = graph.producer(value);
    const auto* call = node.as<Call>();
    if (call == nullptr || node.args.empty() || node.args.front().value() == nullptr) break;
    if (call->op == "aten::_conj") reading.conjugated = !reading.conjugated;
    if (call->op == "aten::_neg_view") reading.negated = !reading.negated;
    value = *node.args.front().value();
  }
  return reading;
}

}  // namespace sinter::ir
