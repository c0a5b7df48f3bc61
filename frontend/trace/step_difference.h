#pragma once

#include <cstdint>

#include "compiler/support/report.h"
#include "frontend/trace/step.h"

namespace sinter::frontend {

/// How a call differs from the step that was recorded in its place, the `position`-th of its segment (from 1): the
/// operator, else the first tensor it met or the first argument that differs.
[[nodiscard]] GuardMiss difference(const Step& recorded, const Step& now, uint32_t position);

}  // namespace sinter::frontend
