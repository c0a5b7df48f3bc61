#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/codegen/row_passes.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// How the vectors of a kernel with reduced loops are dealt.
struct LlvmRowSchedule {
  bool across = false;  ///< a vector holds neighbouring rows, not neighbouring points of a row
  int64_t lanes = 1;
  int64_t unroll = 1;  ///< vectors side by side; along rows the most of any pass
  Keep keep = Keep::nothing;
  int64_t kept_points = 0;  ///< of a row, or of a block of rows, that memory of kept elements has room for
};

[[nodiscard]] LlvmRowSchedule llvm_row_schedule(const kernel::Kernel& kernel, int vector_bits);

/// The module of a kernel with reduced loops and at least one point, whose range is one of rows.
struct LlvmRowFunction {
  std::string text;
  std::vector<int64_t> sizes;  ///< what the parameters after the tensors are to hold
  int64_t block = 1;           ///< rows that are done together: ranges are best whole blocks
};
[[nodiscard]] LlvmRowFunction llvm_row_function(const kernel::Kernel& kernel, int vector_bits);

}  // namespace sinter::codegen
