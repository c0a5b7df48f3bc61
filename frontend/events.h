#pragma once

#include <string>

#include "compiler/support/errors.h"

namespace sinter::frontend {

/// A break in one line: code, operator, place, reason and hint, as far as there are.
[[nodiscard]] std::string one_line(const GraphBreak& reason);

}  // namespace sinter::frontend
