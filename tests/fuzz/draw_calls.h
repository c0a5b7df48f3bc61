#pragma once

#include <vector>

#include "dice.h"
#include "program.h"
#include "themes.h"

namespace sinter::test::fuzz {

/// Enough calls that most are answered by compiled code: what is new in a call runs and is recorded. `trusted`: no host
/// code runs that could ask for a module's flags and parameters.
[[nodiscard]] std::vector<Call> draw_calls(Dice& dice, const Program& program, const Themes& themes, bool trusted);

}  // namespace sinter::test::fuzz
