#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/plan.h"
#include "runtime/cuda/cubins.h"
#include "runtime/cuda/driver.h"

namespace sinter::runtime {

/// A generated kernel loaded on one device, ready to launch. Stays loaded until the process ends.
struct CudaKernel {
  CUfunction function = nullptr;
  int registers = -1;     ///< per thread
  int spill_bytes = -1;   ///< local memory per thread
  int shared_bytes = -1;  ///< static shared memory per block
  bool waits = false;     ///< its text waits for the kernels before it (sm_90 and later), so it may be launched early
};

/// When the device may launch a kernel.
enum class LaunchOrder : uint8_t {
  when_done,  ///< when what is before it in the stream has ended
  early,      ///< while the kernel before it still runs, where its text waits: only its launch overlaps
};

/// Loads the kernel called `name` on a device, once per process, and with it all that its code holds. Thread-safe.
[[nodiscard]] CudaKernel load_kernel(const std::shared_ptr<const CubinCode>& code, const std::string& name, int device);

/// What a launch passes to the driver: a pointer to each 8-byte value. Refers to `values`, which must outlive it.
class LaunchParams {
 public:
  explicit LaunchParams(std::span<uint64_t> values);
  [[nodiscard]] void** pointers() { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<void*, 32> few_;
  std::vector<void*> many_;
};

/// Launches over the grid of `source` on a stream of the current context.
void launch(const Driver& driver, const KernelSource& source, const CudaKernel& kernel, std::span<uint64_t> values,
            CUstream stream, LaunchOrder order = LaunchOrder::when_done);

}  // namespace sinter::runtime
