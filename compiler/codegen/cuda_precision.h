#pragma once

#include <string_view>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// For every slot: true when it is an f32 whose every use ends, through continuous arithmetic in f32 alone, in rounding
/// to f16 or bf16, from which nothing follows that jumps. Such a value needs an error below half an ulp of the half
/// type, not of f32. All false when the kernel asks for full accuracy.
[[nodiscard]] std::vector<bool> half_accurate_slots(const kernel::Kernel& kernel);

/// The cheaper text for an op whose result needs half accuracy; empty where the accurate one is as good.
[[nodiscard]] std::string_view half_text(std::string_view op);

}  // namespace sinter::codegen
