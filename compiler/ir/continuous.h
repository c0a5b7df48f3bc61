#pragma once

#include "compiler/ir/op.h"

namespace sinter::ir {

/// Whether a small error of an operand makes a small error of the result, for a native op. It does not where the result
/// is a comparison, an integer, or looks at a sign or a neighbour.
[[nodiscard]] bool is_continuous(OpId op);

}  // namespace sinter::ir
