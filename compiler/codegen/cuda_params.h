#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// A parameter's name says what it is: in0, scalar1, out2.
[[nodiscard]] std::string cuda_param_name(const kernel::Param& param, uint32_t index);

/// The parameters of a kernel's function, in order: "const float* __restrict__ in0, float* __restrict__ out1".
[[nodiscard]] std::string cuda_declarations(std::span<const kernel::Param> params);

}  // namespace sinter::codegen
