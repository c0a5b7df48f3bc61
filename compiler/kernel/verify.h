#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// Everything that is wrong with a kernel, in words; empty when back ends can take it. What `print` calls a value or a
/// parameter is called so here.
[[nodiscard]] std::vector<std::string> verify(const Kernel& kernel);

/// Throws InternalError naming the step that left the kernel, with every problem and the text, where `verify` finds
/// any.
void require(const Kernel& kernel, std::string_view step);

}  // namespace sinter::kernel
