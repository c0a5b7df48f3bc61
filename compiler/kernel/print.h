#pragma once

#include <string>

#include "compiler/kernel/kernel.h"

namespace sinter::kernel {

/// The kernel as text (docs/kernels.md, "As text"). `parse` reads it back; printing that again gives the same text.
/// Comments are left out. Prints broken kernels too.
[[nodiscard]] std::string print(const Kernel& kernel);

/// "3 + 512*i0 + i1 + 2*((i0 + 4*i1) / 8 % 3)": `i0` is the outermost loop.
[[nodiscard]] std::string to_string(const ir::Index& index);

}  // namespace sinter::kernel
