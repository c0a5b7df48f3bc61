#pragma once

#include <cstdint>

namespace sinter {

/// Which code generator a plan's kernels come from.
enum class Backend : uint8_t { cuda, llvm };

/// What the compiler must know of the device it compiles for.
struct DeviceInfo {
  Backend backend = Backend::llvm;
  int sm = 90;                ///< CUDA: compute capability times 10
  int multiprocessors = 132;  ///< CUDA
  int vector_bits = 256;      ///< CPU: width of one vector register
};

}  // namespace sinter
