#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/support/report.h"

namespace sinter::passes {

/// Most bytes that the tensors a captured graph makes hold at once when each storage is freed after its last use: what
/// eager execution needs at least. Inputs, state and workspaces inside ops are not counted.
[[nodiscard]] int64_t eager_peak_bytes(const ir::Graph& captured);

/// Who holds the tensors that live at the moment of a call at which most bytes do, each freed after its last use; the
/// largest first. Needs: fused. Not counted: inputs, state, what is computed once (`freeze`), workspaces inside ops.
[[nodiscard]] std::vector<SegmentOwner> owners_at_peak(const ir::Graph& fused, bool freeze);

}  // namespace sinter::passes
