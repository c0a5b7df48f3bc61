#pragma once

namespace sinter::frontend {

/// Whether LibTorch was built with oneDNN, and the user has not turned it off.
[[nodiscard]] bool has_onednn();

/// Whether oneDNN multiplies matrices of f32 clearly faster here than the BLAS that LibTorch calls: MKL takes slower
/// kernels on processors that are not Intel's. Measured once in a process, in a few milliseconds. Never
/// without oneDNN. Thread-safe.
[[nodiscard]] bool multiplies_faster_with_onednn();

}  // namespace sinter::frontend
