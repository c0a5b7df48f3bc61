#pragma once

#include <cstdint>

namespace sinter {

/// The quotient of two positive numbers, rounded up.
[[nodiscard]] constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace sinter
