#pragma once

#include <cstdint>

#include "compiler/ir/op.h"

namespace sinter::ir {

/// About how many instructions a primitive takes.
[[nodiscard]] int64_t instructions_of(OpId op);

/// True where keeping a result beats computing it again.
[[nodiscard]] inline bool is_dear(OpId op) { return instructions_of(op) > 1; }

}  // namespace sinter::ir
