#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/plan.h"

/// CUDA C++ text to machine code. The one place that knows NVRTC, which is opened when first needed and needs no GPU.
/// All functions are thread-safe; several threads compile at the same time.
namespace sinter::runtime::nvrtc {

/// "13.0"; throws InternalError when the library is not found.
[[nodiscard]] std::string version();

/// What tells this exact compiler from every other: the build ID of its library, read without loading it where that
/// is possible, or else its version and size. Throws InternalError when the library is not found.
[[nodiscard]] std::string identity();

/// The options that `compile` passes, separated by spaces.
[[nodiscard]] std::string options(int sm);

/// The cubin of `source` for one architecture (90 is sm_90). Throws InternalError("nvrtc") with the first lines of the
/// compiler's log; its artifact is a file with the options, the source and the whole log.
[[nodiscard]] std::vector<char> compile(const KernelSource& source, int sm);

/// The cubin of a text that may not compile; nothing where it does not.
[[nodiscard]] std::optional<std::vector<char>> try_compile(const std::string& text, int sm);

/// Starts loading NVRTC and compiling an empty kernel on a background thread, once per process: the first compilation
/// of a process is several times slower than the next, and overlaps with whatever the caller does meanwhile. Never
/// throws; without the library it does nothing.
void prewarm(int sm);

}  // namespace sinter::runtime::nvrtc
