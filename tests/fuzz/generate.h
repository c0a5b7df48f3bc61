#pragma once

#include "../hostile/harness.h"
#include "program.h"

namespace sinter::test::fuzz {

/// A random program: the same for the same seed on the same kind of device. Instructions are tried as they are added:
/// what LibTorch refuses, and what leaves numbers too large to compare, is left out. Where replays run the host code,
/// most programs have effects of the host.
[[nodiscard]] Program generate(uint64_t seed, const hostile::Place& place);

}  // namespace sinter::test::fuzz
