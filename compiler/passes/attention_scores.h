#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/rewriter.h"

/// The scores of an attention that is written out: what stands between its two products.
namespace sinter::passes {

/// What is done to scores before their softmax.
enum class Masking : uint8_t {
  added,         ///< numbers are added to them
  hidden_where,  ///< they become -inf where a truth value is true
  shown_where,   ///< they become -inf where it is false
};

struct ScoreMask {
  ir::ValueId over;
  Masking masking = Masking::added;
  ir::Type scores;  ///< over which it is laid; the last two dims are queries and keys
};

struct AttentionScores {
  ir::ValueId product;           ///< [batch x heads, queries, keys]
  std::vector<ScoreMask> masks;  ///< the last first
  double scale = 1;              ///< of the product, under all masks
  bool zeros = false;            ///< of a row that is masked whole
  ir::Type type;                 ///< of what the softmax takes
};

/// What is behind the softmax that a product weighs with: numbers times a product, in any row-major sizes of which the
/// last two are its own, and masks over that. All in halves, or all in f32. `uses` are those of the graph by nodes that
/// are not dead; all but the weights are read once.
[[nodiscard]] std::optional<AttentionScores> scores_behind(const ir::Graph& graph, std::span<const uint32_t> uses,
                                                           ir::ValueId weights);

/// Adds what a mask of truth values adds to scores, -inf where they are hidden and else 0, as a value of this type.
[[nodiscard]] ir::ValueId add_hiding_bias(Rewriter& rewrite, ir::ValueId truth, Masking masking, ir::Type type,
                                          ir::ScopeId scope);

}  // namespace sinter::passes
