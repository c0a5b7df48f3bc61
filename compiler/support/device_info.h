#pragma once

#include <cstdint>

namespace sinter {

/// Which code generator a plan's kernels come from.
enum class Backend : uint8_t { cuda, llvm };

/// What the compiler must know of the device it compiles for.
struct DeviceInfo {
  Backend backend = Backend::llvm;
  int sm = 90;                   ///< CUDA: compute capability times 10
  int multiprocessors = 132;     ///< CUDA
  int vector_bits = 256;         ///< CPU: width of one vector register
  bool onednn = false;           ///< CPU: LibTorch hands convolutions of f32 to oneDNN
  bool onednn_products = false;  ///< CPU: oneDNN multiplies matrices of f32 faster than the BLAS behind `aten::mm`
  /// Convolutions of this device are faster, and give channels-last results, when their operands are channels-last.
  bool channels_last_half = false;   ///< of f16 and bf16
  bool channels_last_float = false;  ///< of f32
};

}  // namespace sinter
