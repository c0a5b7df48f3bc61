#pragma once

#include <ATen/core/Generator.h>

#include <memory>
#include <vector>

#include "runtime/host.h"

namespace sinter::frontend {

/// The generators of a CUDA device that a recorded plan draws from: the default one, and those its calls name. Follows
/// LibTorch's protocol for CUDA Graphs (ATen/cuda/CUDAGeneratorImpl.h, "CUDA Graph-safe RNG states"): recorded kernels
/// read seed and offset from memory of the generator, which is set before every replay, so that a replay draws what
/// the same operators would have drawn. Not to be made while a stream is recorded.
[[nodiscard]] std::unique_ptr<runtime::Host::Draws> make_graph_generators(int device_index,
                                                                          const std::vector<at::Generator>& named);

}  // namespace sinter::frontend
