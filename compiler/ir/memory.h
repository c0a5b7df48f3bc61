#pragma once

#include "compiler/ir/graph.h"

namespace sinter::ir {

/// The value in whose memory a value lies: itself, where it is no view. Other views lie there too.
[[nodiscard]] inline ValueId memory_of(const Graph& graph, ValueId value) {
  while (const auto& alias = graph.value(value).alias) value = alias->base;
  return value;
}

}  // namespace sinter::ir
