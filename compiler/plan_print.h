#pragma once

#include <string>

#include "compiler/plan.h"

namespace sinter {

/// The plan as text: buffers, kernels without their source, steps, outputs. For people and goldens; nothing reads it
/// back.
[[nodiscard]] std::string print(const Plan& plan);

}  // namespace sinter
