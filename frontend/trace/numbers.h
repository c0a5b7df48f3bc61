#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "frontend/trace/step.h"

namespace sinter::frontend {

/// The numbers of a call that a kernel can take on every call and compute with as eager does: operands and factors of
/// arithmetic on floats that have dims. `words` are, by argument, where its bits stand in the key.
[[nodiscard]] std::vector<StepNumber> numbers_of(const OpFacts& facts, c10::ArrayRef<c10::IValue> arguments,
                                                 std::span<const uint32_t> words);

}  // namespace sinter::frontend
