#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan.h"
#include "compiler/support/device_info.h"

namespace sinter::codegen {

/// LLVM IR text of one kernel for a CPU with registers of `device.vector_bits`:
///
///   define void @NAME(ptr %params, i64 %begin, i64 %end)
///
/// runs the points [begin, end) of the loop nest, in row-major order of the extents; the rows [begin, end) of a kernel
/// that reduces. `%params` is an array of
/// pointers: the first element of a tensor, or the double (float dtypes) or int64 (others) of a host scalar.
/// Begin is a multiple of `granule`, for speed alone: any range is correct, and disjoint ranges may run at once.
/// The text names no target; whoever compiles it chooses the CPU. It calls SLEEF's vector functions (the ones
/// ATen uses) and libm. Throws InternalError when the kernel holds what the back end does not know.
[[nodiscard]] KernelSource generate_llvm(const kernel::Kernel& kernel, const DeviceInfo& device);

}  // namespace sinter::codegen
