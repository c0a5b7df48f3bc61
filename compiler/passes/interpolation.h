#pragma once

#include <optional>

#include "compiler/passes/rewriter.h"

namespace sinter::passes {

/// True for a call that weighs neighbours.
[[nodiscard]] bool interpolates(const ir::Node& node);

/// True for a call that makes one value of another: images with elements, of static sizes and as many axes, the result
/// dense. What else they must be, the caller asks.
[[nodiscard]] bool makes_image_of_image(const ir::Graph& graph, const ir::Node& node);

/// What stands for a call of aten::upsample_linear1d, _bilinear2d or _trilinear3d: every element is a sum of two, four
/// or eight neighbours. Where the image becomes a whole number of times as large along each axis (`align_corners` off),
/// they are views of it, and weights repeat from pixel to pixel; else they are gathered, and weights computed. Nothing
/// for any other node. In f32, as LibTorch computes; weights are exact where factors are powers of two.
[[nodiscard]] std::optional<ir::ValueId> interpolated(Rewriter& rewrite, const ir::Node& node);

}  // namespace sinter::passes
