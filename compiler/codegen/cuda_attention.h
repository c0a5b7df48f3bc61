#pragma once

#include "compiler/kernel/attention.h"
#include "compiler/plan.h"

namespace sinter::codegen {

/// CUDA C++ text of an attention on tensor cores: a warp has 16 queries and holds their scores with 64 keys at a time,
/// so that each operand is read from memory once and nothing between them is written. Vectors are within the limits of
/// compiler/kernel/attention.h, and their elements lie side by side. Needs compute capability 8.0. Source:
/// FlashAttention-2 (Dao, 2023); elements and keys are taken in an order that needs no shared memory.
[[nodiscard]] KernelSource generate_cuda(const kernel::AttentionKernel& kernel);

}  // namespace sinter::codegen
