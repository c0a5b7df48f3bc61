#pragma once

#include "compiler/codegen/cuda_text.h"
#include "compiler/codegen/cuda_window_schedule.h"
#include "compiler/kernel/kernel.h"

namespace sinter::codegen {

/// The `extern "C"` function of a kernel of windows; helpers it calls are not part of it. Outputs of a tile have
/// accumulators of their own. For every turn of the outer tap loops the weights of all taps are read, then every
/// element that the windows of the tile cover, once, for all outputs and taps that it belongs to. A product that is
/// summed up is rounded with the sum: both are one convolution of ATen.
[[nodiscard]] CudaFunction cuda_window_function(const kernel::Kernel& kernel, const WindowSchedule& schedule);

}  // namespace sinter::codegen
