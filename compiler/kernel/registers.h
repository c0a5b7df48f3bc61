#pragma once

#include <cstdint>

#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// True where a few lanes of a warp hold a row, each the same number of neighbouring points, and no load asks where it
/// may read: such a kernel may run in the order of its body, with every value of the row in registers.
[[nodiscard]] bool has_short_rows(const Kernel& kernel);

/// Registers of 32 bits that a thread needs, about, if it runs the body in order with `width` points at a time: the
/// addresses of what it reads, and the values that it holds at once.
[[nodiscard]] int64_t registers_in_order(const Kernel& kernel, int64_t width);

}  // namespace sinter::kernel
