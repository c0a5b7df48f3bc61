#pragma once

#include <optional>
#include <span>
#include <vector>

#include "compiler/passes/attention_operands.h"
#include "compiler/passes/attention_scores.h"
#include "compiler/passes/batched_product.h"
#include "compiler/passes/rewriter.h"

/// Attention over so few keys that a generated kernel holds the scores of a query in registers.
namespace sinter::passes {

struct ShortMask {
  ir::ValueId value;
  ir::Type type;  ///< in the dims of the scores, 1 where it repeats
  Masking masking = Masking::added;
};

struct ShortAttention {
  AttentionOperand query, key, values;  ///< [batch dims, tokens, vector], vectors in one piece
  std::vector<ShortMask> masks;
  double scale = 1;
  bool zeros = false;
  bool causal = false;
};

/// The attention of two products and the scores between them; nothing where its sizes are none of the kernel's, or its
/// operands or masks lie otherwise. Dims in front of the last two are those that all masks and operands agree on:
/// windows and heads, say.
[[nodiscard]] std::optional<ShortAttention> short_attention(const ir::Graph& graph, const AttentionScores& scores,
                                                            const BatchedProduct& inner, const BatchedProduct& outer);

/// The same of a call of one of LibTorch's fused kernels, without dropout, of which only the first result is read.
/// `uses` are those of the graph by nodes that are not dead.
[[nodiscard]] std::optional<ShortAttention> short_attention_call(const ir::Graph& graph, std::span<const uint32_t> uses,
                                                                 const ir::Node& node);

/// Adds it to the graph that is built, as halves in the order of the queries' memory.
[[nodiscard]] ir::ValueId add_short_attention(Rewriter& rewrite, const ShortAttention& found, ir::ScopeId scope);

}  // namespace sinter::passes
