#pragma once

#include "compiler/ir/graph.h"

namespace sinter::ir {

/// How a value reads its memory: as it is, conjugated, negated, or both.
struct Reading {
  bool conjugated = false;
  bool negated = false;

  [[nodiscard]] bool plain() const { return !conjugated && !negated; }
  bool operator==(const Reading&) const = default;
};

/// Views made by `aten::_conj` and `aten::_neg_view`, and views of those, read the numbers of their memory otherwise;
/// every other value reads them as they are. Views take what they look at as their first argument.
[[nodiscard]] Reading reading_of(const Graph& graph, ValueId value);

}  // namespace sinter::ir
