#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "compiler/ir/graph.h"

/// What choose_layouts knows of library ops.
namespace sinter::passes {

/// True for four or five static dims: images or volumes, a channel, their weights.
[[nodiscard]] bool has_pixels(const ir::Type& type);

/// A type of static dims, images and channels before all others, in channels-last order, dense.
[[nodiscard]] ir::Type channels_last(ir::Type type);

/// True where the dims from `first_dim` to `last_dim` lie in memory as one. Static types only.
[[nodiscard]] bool are_one_dim(const ir::Type& type, size_t first_dim, size_t last_dim);

/// A library op whose images (results that have pixels) have the layout of one of its arguments.
struct LayoutFollower {
  std::string_view op;               ///< without overload
  size_t leader = 0;                 ///< the argument that decides
  std::span<const size_t> images;    ///< arguments that have the same layout, the leader among them
  std::optional<size_t> kept = {};   ///< argument that the forward op kept for this one, in a form that depends on the
                                     ///< layout: it follows exactly when that op did
  std::optional<size_t> keeps = {};  ///< result that is kept so
};

/// The row of an op; null for one that keeps to the layouts it was captured with.
[[nodiscard]] const LayoutFollower* layout_follower(const ir::Node& node);

/// Arguments of a convolution or of its backward pass that have one layout in the library.
struct ConvolutionImages {
  ir::ValueId input;                  ///< whose dtype and sizes decide
  ir::ValueId output;                 ///< or its gradient; its sizes decide too
  std::span<const size_t> arguments;  ///< positions
};

/// The node as a convolution, or the gradient of one, that LibTorch hands to a library which works in channels-last
/// order: on CUDA not a depthwise one, nor patches that would be less exact, nor volumes but those of halves and one
/// group; on the CPU none of more weights than elements of images. Nothing where it is none.
[[nodiscard]] std::optional<ConvolutionImages> convolution_images(const ir::Graph& graph, const ir::Node& node);

}  // namespace sinter::passes
