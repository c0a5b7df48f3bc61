#include "compiler/passes/layout_rules.h"

#include <algorithm>
#include <array>

#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/onednn_calls.h"

namespace sinter::passes {
namespace {

constexpr std::array<size_t, 1> first = {0};
constexpr std::array<size_t, 2> first_two = {0, 1};
constexpr std::array<size_t, 3> pooled = {0, 1, 7};
constexpr std::array<size_t, 1> input_image = {convolution_input};
constexpr std::array<size_t, 2> forward_images = {convolution_input, convolution_weight};
/// cudnn_convolution_relu(input, weight, ...) and cudnn_convolution_add_relu(input, weight, summand, ...)
constexpr std::array<size_t, 3> summed_images = {0, 1, 2};
/// Of convolution_backward.
constexpr std::array<size_t, 3> backward_images = {0, 1, 2};
constexpr size_t backward_input = 1;
constexpr size_t backward_weight = 2;
constexpr size_t backward_transposed = 7;
constexpr size_t backward_groups = 9;

constexpr std::array followers = {
    LayoutFollower{"aten::max_pool2d_with_indices", 0, first},
    LayoutFollower{"aten::max_pool3d_with_indices", 0, first},
    LayoutFollower{"aten::avg_pool2d", 0, first},
    LayoutFollower{"aten::_adaptive_avg_pool2d", 0, first},
    LayoutFollower{"aten::upsample_nearest2d", 0, first},
    LayoutFollower{"aten::_upsample_nearest_exact2d", 0, first},
    LayoutFollower{"aten::upsample_bilinear2d", 0, first},
    LayoutFollower{"aten::upsample_nearest3d", 0, first},
    LayoutFollower{"aten::_upsample_nearest_exact3d", 0, first},
    LayoutFollower{"aten::upsample_trilinear3d", 0, first},
    LayoutFollower{"aten::native_batch_norm", 0, first},
    LayoutFollower{.op = "aten::cudnn_batch_norm", .leader = 0, .images = first, .keeps = 3},
    LayoutFollower{"aten::max_pool2d_with_indices_backward", 1, pooled},
    LayoutFollower{"aten::max_pool3d_with_indices_backward", 1, pooled},
    LayoutFollower{"aten::avg_pool2d_backward", 1, first_two},
    LayoutFollower{"aten::_adaptive_avg_pool2d_backward", 1, first_two},
    LayoutFollower{"aten::native_batch_norm_backward", 1, first_two},
    LayoutFollower{.op = "aten::cudnn_batch_norm_backward", .leader = 0, .images = first_two, .kept = 8},
};

/// oneDNN reads weights as they come into an order of its own, which costs a pass over them on every call: dear for
/// channels-last images where there are more weights than elements of images. Packed ones are in that order already.
bool has_small_weight(const ir::Graph& graph, ir::ValueId weight, ir::ValueId input, ir::ValueId output) {
  const ir::Type& type = graph.type(weight);
  const ir::Type& from = graph.type(input);
  const ir::Type& to = graph.type(output);
  if (!type.is_static() || !from.is_static() || !to.is_static()) return false;
  return type.dtype == ir::DType::other || type.numel() <= from.numel() + to.numel();
}

/// cuDNN multiplies patches of an f32 image of few channels in f32 where the image lies in rows, and in TF32 where it
/// lies channels-last. A vision transformer has no other convolution: all that it computes would lose what LibTorch's
/// call keeps.
bool are_patches_in_f32(const ir::Graph& graph, const ConvolutionImages& images, ir::ValueId weight) {
  constexpr int64_t few_channels = 4;
  const ir::Type& from = graph.type(images.input);
  const ir::Type& to = graph.type(images.output);
  const ir::Type& type = graph.type(weight);
  const auto is_image = [](const ir::Type& image) { return image.rank() == 4 && image.is_static(); };
  if (from.dtype != ir::DType::f32 || !is_image(from) || !is_image(to) || !is_image(type)) return false;
  const auto pixels = from.static_sizes(), patches = to.static_sizes(), filter = type.static_sizes();
  const bool apart = patches[2] * filter[2] <= pixels[2] && patches[3] * filter[3] <= pixels[3];
  return apart && filter[2] * filter[3] > 1 && pixels[1] <= few_channels;
}

/// cuDNN has no quick kernels for volumes of several groups that lie channels-last, nor for all of f32.
bool is_slow_over_channels_last(const ir::Graph& graph, const ConvolutionImages& images, const ir::Arg& groups) {
  const ir::Type& type = graph.type(images.input);
  return type.rank() == 5 && (!ir::is_half(type.dtype) || groups.data != ir::Arg{int64_t{1}}.data);
}

/// The node as the gradient of a convolution.
std::optional<ConvolutionImages> gradient_images(const ir::Node& node, std::span<const size_t> images) {
  if (call_named(node, "aten::convolution_backward", convolution_backward_arguments) == nullptr) return std::nullopt;
  const bool values = std::ranges::all_of(backward_images, [&](size_t at) { return node.args[at].value() != nullptr; });
  if (!values) return std::nullopt;
  return ConvolutionImages{*node.args[backward_input].value(), *node.args[0].value(), images};
}

bool is_set(const ir::Arg& arg) { return arg.data == ir::Arg{true}.data; }

/// What oneDNN reads in channels-last order. It takes weights as they lie. LibTorch has other kernels for transposed
/// convolutions, which stay row-major.
std::optional<ConvolutionImages> onednn_images(const ir::Graph& graph, const ir::Node& node) {
  auto images = gradient_images(node, first_two);
  size_t weight = backward_weight;
  if (images && is_set(node.args[backward_transposed])) return std::nullopt;
  if (!images) {
    const bool sums = call_named(node, onednn_summed_convolution, 13) != nullptr;
    const bool stores = call_named(node, onednn_convolution, 10) != nullptr;
    const bool called = convolution_of(graph, node) && !is_set(node.args[convolution_transposed]);
    if (!sums && !stores && !called) return std::nullopt;
    const std::span<const size_t> read = sums ? std::span<const size_t>(first_two) : input_image;
    images = ConvolutionImages{*node.args[convolution_input].value(), node.results[0], read};
    weight = sums ? 2 : convolution_weight;
  }
  const bool fits = has_small_weight(graph, *node.args[weight].value(), images->input, images->output);
  return fits ? images : std::nullopt;
}

}  // namespace

bool are_one_dim(const ir::Type& type, size_t first_dim, size_t last_dim) {
  for (size_t dim = first_dim; dim < last_dim; ++dim) {
    if (type.strides[dim] != type.strides[dim + 1] * type.sizes[dim + 1].constant()) return false;
  }
  return true;
}

bool has_pixels(const ir::Type& type) { return (type.rank() == 4 || type.rank() == 5) && type.is_static(); }

ir::Type channels_last(ir::Type type) {
  const auto sizes = type.static_sizes();
  int64_t stride = sizes[1];
  for (size_t dim = sizes.size(); dim-- > 2; stride *= sizes[dim]) type.strides[dim] = stride;
  type.strides[1] = 1;
  type.strides[0] = stride;
  return type;
}

const LayoutFollower* layout_follower(const ir::Node& node) {
  const auto* call = node.as<ir::Call>();
  if (call == nullptr) return nullptr;
  const auto found = std::ranges::find(followers, base_name(call->op), &LayoutFollower::op);
  if (found == followers.end()) return nullptr;
  const bool complete = std::ranges::all_of(found->images, [&](size_t position) {
    return position < node.args.size() && node.args[position].value() != nullptr;
  });
  return complete ? &*found : nullptr;
}

std::optional<ConvolutionImages> convolution_images(const ir::Graph& graph, const ir::Node& node) {
  if (graph.device.kind == ir::Device::Kind::cpu) return onednn_images(graph, node);
  if (const auto convolution = convolution_of(graph, node)) {
    const ConvolutionImages images{convolution->input, node.results[0], forward_images};
    const bool stays = convolution->depthwise || are_patches_in_f32(graph, images, convolution->weight) ||
                       is_slow_over_channels_last(graph, images, node.args[convolution_groups]);
    return stays ? std::nullopt : std::optional(images);
  }
  const bool sums = call_named(node, "aten::cudnn_convolution_add_relu", 9) != nullptr;
  if (sums || call_named(node, "aten::cudnn_convolution_relu", 7) != nullptr) {
    const std::span<const size_t> images = sums ? std::span<const size_t>(summed_images) : forward_images;
    const ConvolutionImages found{*node.args[convolution_input].value(), node.results[0], images};
    const bool stays = are_patches_in_f32(graph, found, *node.args[convolution_weight].value());
    return stays ? std::nullopt : std::optional(found);
  }
  const auto images = gradient_images(node, backward_images);
  if (!images || are_patches_in_f32(graph, *images, *node.args[backward_weight].value())) return std::nullopt;
  const auto* groups = std::get_if<int64_t>(&node.args[backward_groups].data);
  const ir::Type& type = graph.type(images->input);
  const bool depthwise = groups != nullptr && *groups > 1 && type.rank() > 1 && type.sizes[1] == ir::Dim(*groups);
  const bool stays = depthwise || is_slow_over_channels_last(graph, *images, node.args[backward_groups]);
  return groups == nullptr || stays ? std::nullopt : images;
}

}  // namespace sinter::passes
