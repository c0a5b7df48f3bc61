#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/batched_product.h"
#include "compiler/passes/rewriter.h"

/// What the kernels of attention read: an operand of a product seen as the halves that it was made of.
namespace sinter::passes {

/// A value seen in other sizes and strides, times a number.
struct AttentionOperand {
  ir::ValueId value;
  ir::Type type;
  double scale = 1;
};

/// The first operand of the call of this operator that gives a value; nothing where something else does.
[[nodiscard]] std::optional<ir::ValueId> source_of(const ir::Graph& graph, ir::ValueId value, std::string_view op);

/// The number that a node multiplies its one operand by; finite, not 0.
[[nodiscard]] std::optional<double> factor_of(const ir::Graph& graph, const ir::Node& node);

/// True where each vector (the last dim) is in one piece and begins at a multiple of 16 bytes if the memory does.
[[nodiscard]] bool is_aligned(const ir::Graph& graph, const AttentionOperand& operand);

/// What stands in front of the tokens of queries, keys and values.
struct AttentionBatch {
  int64_t batch = 1, heads = 1;
  bool aligned = true;              ///< else vectors in one piece are enough
  std::vector<int64_t> apart = {};  ///< dims in place of batch and heads, where these do not lie as two
};

/// Of one dtype; values are times 1.
struct AttentionOperands {
  AttentionOperand query, key, values;
};

/// The operands of the two products of an attention, [batch x heads, tokens, vector] and the keys turned, as halves in
/// [batch, heads, tokens, vector], or [apart..., tokens, vector]. Copies that line them up for the products are looked
/// through, and numbers they were multiplied by before; what is found lies as the batch says (`is_aligned`). In f32,
/// the cast from halves is looked through too, nothing is found where there is none, and the halves may lie in any
/// order.
[[nodiscard]] std::optional<AttentionOperands> attention_operands(const ir::Graph& graph, const BatchedProduct& inner,
                                                                  const BatchedProduct& outer,
                                                                  const AttentionBatch& batch);

/// The operand in the graph that is built, or a copy of one whose vectors do not lie as `is_aligned` says, or not in
/// one piece where that is enough.
[[nodiscard]] ir::ValueId lined_up(Rewriter& rewrite, const AttentionOperand& operand, bool aligned, ir::ScopeId scope);

/// What is laid over scores of these sizes, at least two dims, of which the first make up the batch, seen in four, each
/// dim that repeats being 1; nothing where it does not have a column for every key.
[[nodiscard]] std::optional<AttentionOperand> over_scores(const ir::Graph& graph, ir::ValueId value,
                                                          const ir::Type& scores, int64_t batch);

/// The same of halves that are added to the scores. In f32, a cast from halves is looked through.
[[nodiscard]] std::optional<AttentionOperand> attention_bias(const ir::Graph& graph, ir::ValueId value,
                                                             const ir::Type& scores, int64_t batch);

}  // namespace sinter::passes
