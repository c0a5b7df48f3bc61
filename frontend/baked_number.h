#pragma once

#include <optional>

#include "compiler/plan.h"
#include "compiler/support/errors.h"
#include "frontend/optimizers.h"
#include "sinter/options.h"

namespace sinter::frontend {

/// The break of a plan whose library calls take a number that an optimizer computes for every call, where a CUDA Graph
/// would keep the one it was recorded with. Kernels take such numbers from each call.
[[nodiscard]] std::optional<GraphBreak> baked_number(const Plan& plan, const OptimizerLink& optimizers, Mode mode);

}  // namespace sinter::frontend
