#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/support/report.h"

namespace sinter::passes {

/// Most bytes that the tensors a captured graph makes hold at once when each storage is freed after its last use: what
/// eager execution needs at least. Inputs, state and workspaces inside ops are not counted.
[[nodiscard]] int64_t eager_peak_bytes(const ir::Graph& captured);

/// Memory that holds a value from one step to another, both included.
struct LiveValue {
  ir::ValueId value;
  SegmentOwner::Kind kind = SegmentOwner::Kind::temporary;
  size_t first = 0;
  size_t last = 0;
  int64_t bytes = 0;
};

/// Who holds the values that live at the step at which most bytes do, the largest first.
[[nodiscard]] std::vector<SegmentOwner> owners_at_peak(const ir::Graph& graph, const std::vector<LiveValue>& values);

}  // namespace sinter::passes
