#include "compiler/passes/ownership.h"

#include "compiler/ir/view_source.h"

namespace sinter::passes {

using namespace ir;

Ownership::Ownership(const Graph& graph) : graph_(graph), in_output_(graph.value_count(), false) {
  for (ValueId output : graph.outputs) in_output_[memory_base(graph, output).index] = true;
}

bool Ownership::can_replace(ValueId value, ValueId replacement) const {
  const ValueId from = memory_base(graph_, value);
  const ValueId to = memory_base(graph_, replacement);
  if (from == to || !in_output_[from.index]) return true;
  const Node& maker = graph_.producer(to);
  const bool given =
      maker.as<Input>() || maker.as<State>() || graph_.value(view_source(graph_, replacement).base).alias;
  return !given && !in_output_[to.index];
}

void Ownership::replaced(ValueId value, ValueId replacement) {
  if (in_output_[memory_base(graph_, value).index]) in_output_[memory_base(graph_, replacement).index] = true;
}

}  // namespace sinter::passes
