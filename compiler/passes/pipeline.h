#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string_view>

#include "compiler/ir/verify.h"
#include "compiler/passes/pass.h"

namespace sinter::passes {

/// One pass in its place. The same pass may stand in several.
struct PipelineRow {
  std::string_view name;
  PassFunction run;
  ir::Stage after;       ///< what the graph is once the pass is through
  std::string_view why;  ///< why it stands here
};

/// The passes from a captured graph to a fused one, in order. `plan_memory` follows them.
[[nodiscard]] std::span<const PipelineRow> pipeline();

/// Told of every pass when it is through: its row, the graph after it, when it began.
using PassObserver = std::function<void(const PipelineRow&, const ir::Graph&, std::chrono::steady_clock::time_point)>;

/// Runs the whole pipeline over a captured graph, verifying the graph after every pass. What goes wrong becomes an
/// InternalError that names the pass and the file to which the graph that went in was saved.
void run_pipeline(ir::Graph& graph, const PassContext& context, const PassObserver& observer);

/// Runs one pass by name, at the stage the graph is in, and verifies. Throws UserError for an unknown name.
PassResult run_pass(std::string_view name, ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
