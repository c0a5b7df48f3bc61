#pragma once

#include <span>
#include <vector>

#include "compiler/ir/op.h"
#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// Elements of one parameter from its first on, as the op table's reference functions give them. One for a host scalar.
using Memory = std::vector<ir::RefValue>;

/// Runs a kernel on the CPU, row by row and point by point, through the op table's reference functions; every value is
/// rounded to its dtype, a reduction once it is whole. `memory` holds one element list for each parameter; those of
/// outputs are written. Slow: it says what a kernel means, so that lowering and back ends can be checked against it.
/// Throws InternalError for an element outside its memory.
void interpret(const Kernel& kernel, std::span<Memory> memory);

}  // namespace sinter::kernel
