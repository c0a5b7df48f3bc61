#pragma once

#include <string>
#include <string_view>

namespace sinter::codegen {

/// The device helpers (the .cuh files of this folder) that a kernel's text uses, and what those use in turn, in the
/// order of the files. Keeping to these keeps NVRTC fast.
[[nodiscard]] std::string cuda_prelude(std::string_view text);

/// The embedded .cuh files, joined.
[[nodiscard]] std::string_view cuda_helpers();

}  // namespace sinter::codegen
