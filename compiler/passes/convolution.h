#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"

namespace sinter::passes {

/// What passes ask of a convolution of ATen with one result.
struct Convolution {
  ir::ValueId input;
  ir::ValueId weight;
  std::optional<ir::ValueId> bias;
  bool depthwise = false;  ///< one group a channel, which kernels of ATen's own serve
};

/// Positions among the call's args.
inline constexpr size_t convolution_input = 0;
inline constexpr size_t convolution_weight = 1;
inline constexpr size_t convolution_bias = 2;
inline constexpr size_t convolution_stride = 3;
inline constexpr size_t convolution_padding = 4;
inline constexpr size_t convolution_dilation = 5;
inline constexpr size_t convolution_transposed = 6;
inline constexpr size_t convolution_groups = 8;

/// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding,
/// groups, output_mask): a result for each true value of the mask, that of the bias last.
inline constexpr size_t convolution_backward_arguments = 11;
inline constexpr size_t convolution_backward_mask = 10;

/// Channels of an image of colours: few, but libraries have kernels for them.
inline constexpr int64_t colours = 3;

/// True for a call of a convolution over images that is neither transposed nor dilated.
[[nodiscard]] bool is_undilated_image_call(const ir::Node& convolution);

/// The node as a convolution; nothing where it is none, or its number of groups is no constant.
[[nodiscard]] std::optional<Convolution> convolution_of(const ir::Graph& graph, const ir::Node& node);

/// The node as a convolution in one group, neither transposed nor dilated, whose images and weight have one pixel each
/// and are not empty, and whose result lies as the product of its channels gives it; nothing where it is none.
[[nodiscard]] std::optional<Convolution> pixel_convolution(const ir::Graph& graph, const ir::Node& node);

/// A convolution over images of halves that passes may compute in another way.
struct ImageConvolution {
  Convolution convolution;
  int64_t groups = 1;
  std::vector<int64_t> filters;  ///< sizes of the weight: filters, channels of a group, height, width
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
};

/// The node as such a convolution of static sizes, neither transposed nor dilated, whose result is not empty and lies
/// in channels-last order; nothing where it is none.
[[nodiscard]] std::optional<ImageConvolution> image_convolution(const ir::Graph& graph, const ir::Node& node);

}  // namespace sinter::passes
