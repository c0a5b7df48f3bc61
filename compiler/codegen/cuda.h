#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan.h"
#include "compiler/support/device_info.h"

namespace sinter::codegen {

/// CUDA C++ text of one kernel and how to launch it. The text is specialised to the kernel's extents and strides,
/// includes no header and defines one `extern "C"` function, named as the kernel, whose parameters are the kernel's:
/// a pointer for each input and output, a double or a long long for each host scalar. Compiles with `cuda_options`.
/// A kernel without points (numel 0) gets an empty function that need not be launched.
[[nodiscard]] KernelSource generate_cuda(const kernel::Kernel& kernel, const DeviceInfo& device);

}  // namespace sinter::codegen
