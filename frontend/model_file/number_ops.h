#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string_view>

namespace sinter::frontend {

/// A Python operator on the numbers that sizes are computed with: gives and takes bool, int and float.
/// Throws std::invalid_argument for a division by zero.
using NumberOp = c10::IValue (*)(std::span<const c10::IValue> operands);

/// The operator behind a node's target ("_operator.floordiv", "torch.sym_max"); null where it is none of these.
[[nodiscard]] NumberOp find_number_op(std::string_view target);

}  // namespace sinter::frontend
