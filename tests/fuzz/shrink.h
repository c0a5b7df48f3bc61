#pragma once

#include <functional>

#include "program.h"

namespace sinter::test::fuzz {

/// A smaller program that still fails, found by leaving out calls, outputs, instructions, arguments and what is special
/// about data, one at a time, as long as `fails` says so. `tries` bounds how often it is asked.
[[nodiscard]] Program shrink(Program program, const std::function<bool(const Program&)>& fails, int tries = 400);

}  // namespace sinter::test::fuzz
