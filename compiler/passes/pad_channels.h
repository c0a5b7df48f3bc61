#pragma once

#include "compiler/passes/pass.h"

namespace sinter::passes {

/// Convolutions of halves get as many channels as cuDNN has kernels for. Of grouped 3x3 ones these are 4, 8, 16, 32 or
/// 128 channels a group: it brings any other width into a layout of its own and back, by which a RegNet's convolution
/// over groups of 24 channels takes 38 us where one over groups of 32 takes 5. Several groups become one whose weights
/// are zero between them, and channels of zeros fill what is left; they are cut off the result. An image of three
/// channels gets a fourth. Padding and cutting are part of the kernels around the convolution. Sums gain zeros and
/// nothing else. Needs and gives: functional, layouts chosen. On CUDA, for images and weights in channels-last memory,
/// of static sizes.
PassResult pad_channels(ir::Graph& graph, const PassContext& context);

}  // namespace sinter::passes
