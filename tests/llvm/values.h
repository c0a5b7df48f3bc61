#pragma once

#include <random>

#include "tests/llvm/memory.h"

namespace sinter::test {

/// Values for one operand of an op.
struct Draw {
  ir::Domain domain = ir::Domain::all_reals;
  size_t operand = 0;
  bool special = true;  ///< sprinkle zeros, infinities, NaN, denormals and extremes, where the domain allows them
};

/// Fills a buffer from a fixed seed.
void fill(Buffer& buffer, std::mt19937_64& random, Draw draw = {});

}  // namespace sinter::test
