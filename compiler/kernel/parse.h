#pragma once

#include <string_view>

#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// Reads a kernel from what `print` writes. Throws UserError with `origin`, line and column for anything else; never
/// crashes on broken text. Values are numbered in order, and refer to earlier ones; nothing else is verified.
[[nodiscard]] Kernel parse(std::string_view text, std::string_view origin = "kernel");

}  // namespace sinter::kernel
