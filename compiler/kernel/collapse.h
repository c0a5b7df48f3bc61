#pragma once

#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// Merges every pair of adjacent loop dims that all accesses step through as one, so that a contiguous kernel of any
/// rank becomes one loop. Questions where a point lies are asked of the merged loop. The order of the points stays the
/// same. Reduced loops are merged with reduced ones only.
void collapse(Kernel& kernel);

}  // namespace sinter::kernel
