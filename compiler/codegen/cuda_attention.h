#pragma once

#include "compiler/kernel/attention.h"
#include "compiler/plan.h"

namespace sinter::codegen {

/// CUDA C++ text of an attention on tensor cores: a warp has 16 queries and holds their scores with all keys, so that
/// each operand is read from memory once and nothing between them is written. Sizes are within the
/// limits of compiler/kernel/attention.h, and the elements of a vector lie side by side. Needs compute capability 8.0.
/// Source: the products of FlashAttention-2 (Dao, 2023), whose loop over keys these sizes do not need.
[[nodiscard]] KernelSource generate_cuda(const kernel::AttentionKernel& kernel);

}  // namespace sinter::codegen
