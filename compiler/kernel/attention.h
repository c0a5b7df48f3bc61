#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// What a kernel of attention takes: vectors of an even number of elements, which a warp holds in registers.
inline constexpr int64_t longest_attention_vector = 128;
inline constexpr int64_t attention_vector_step = 2;

/// An operand of an attention in the memory of a parameter, in elements.
struct AttentionOperand {
  uint32_t param = 0;
  int64_t offset = 0;
  std::vector<int64_t> batch;  ///< strides by dim of the batch
  int64_t row = 0;             ///< from one query or key to the next
  int64_t column = 1;          ///< from one element of a vector, or key of a bias, to the next
  int64_t reach = 0;           ///< elements from `offset` to the end of the parameter's memory
};

/// The kernel of one ir::Attention, which is no loop nest: how its operands lie.
struct AttentionKernel {
  std::string name;
  std::vector<std::string> comment;
  ir::DType dtype = ir::DType::f16;
  std::vector<int64_t> batch;  ///< what stands in front of the last two dims, as few dims as all operands allow
  int64_t queries = 0, keys = 0, vector = 0;
  double scale = 1;
  bool zeros = false;   ///< of a row whose scores are all -inf
  bool causal = false;  ///< query i sees keys up to i only
  AttentionOperand query, key, values, result;
  std::optional<AttentionOperand> bias;
  std::vector<Param> params;  ///< inputs in the order of the fused node's args, then the output

  [[nodiscard]] int64_t batches() const;
  [[nodiscard]] int64_t bytes_moved() const;  ///< each operand once, as often as the batch repeats it in memory
};

/// The attention of a fused node's body; nothing where the body is a loop nest.
[[nodiscard]] std::optional<AttentionKernel> attention_of(const ir::Graph& body, const std::string& name);

}  // namespace sinter::kernel
