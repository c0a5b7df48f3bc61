#pragma once

#include "bench/models/model.h"

/// Factories of the built-in models; models() lists them.
namespace sinter::bench {

/// x * 0.5 * (1 + erf(x / 1.41421)) over a tensor of any shape.
Model make_gelu();
/// [batch, 768] -> [batch, 768]: two linear layers around an exact GELU.
Model make_gelu_mlp();
/// [batch, 3, 224, 224] -> [batch, 1000]. He et al., Deep Residual Learning for Image Recognition, with torchvision's
/// placement of the stride in the 3x3 convolution.
Model make_resnet50();

}  // namespace sinter::bench
