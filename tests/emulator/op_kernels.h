#pragma once

#include <vector>

#include "tests/emulator/compare.h"

namespace sinter::test {

/// Dtypes that kernels read and write.
[[nodiscard]] std::vector<ir::DType> kernel_dtypes();

/// Cases that follow each other are the layouts of one op.
inline constexpr size_t layouts_per_op = 5;

/// Kernels for every native op that has a form for the dtype: contiguous with a tail; transposed, broadcast and strided
/// operands in one nest with an output each; one element; empty.
[[nodiscard]] std::vector<Case> op_cases(ir::DType dtype);

}  // namespace sinter::test
