#pragma once

#include <optional>

#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// The kernel with a loop for each digit that its indices take of the points' numbers, by division and remainder:
/// blocks of an image that are stored one after the other are then read with strides. Reduced loops stay as they are,
/// as does the order of the points. Nothing where some division stays.
[[nodiscard]] std::optional<Kernel> split_loops(Kernel kernel);

}  // namespace sinter::kernel
