#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/passes/pass.h"

/// Calls that join the elements of windows which slide over an image: pools and depthwise convolutions.
namespace sinter::passes {

/// One of the last dims of an image, along which windows slide.
struct WindowAxis {
  int64_t size = 1;     ///< of the input
  int64_t outputs = 1;  ///< windows
  int64_t taps = 1;     ///< elements of a window
  int64_t stride = 1;   ///< elements between neighbouring windows
  int64_t padding = 0;  ///< elements before the input that windows cover
  int64_t dilation = 1;

  /// Elements that windows cover of the input and its padding.
  [[nodiscard]] int64_t covered() const { return (outputs - 1) * stride + (taps - 1) * dilation + 1; }
  /// Elements after the input that windows cover.
  [[nodiscard]] int64_t after() const { return covered() > padding + size ? covered() - padding - size : 0; }
};

struct WindowCall {
  enum class Kind : uint8_t {
    largest,  ///< of a window
    mean,     ///< the sum of a window divided by `divisor` and by its `counts`
    product,  ///< the sum of a window's elements times weights, one channel by itself, and a bias
  };
  Kind kind = Kind::largest;
  ir::ValueId input;
  std::optional<ir::ValueId> weight;
  std::optional<ir::ValueId> bias;
  double divisor = 1;
  std::vector<WindowAxis> axes;                   ///< of the last dims, in their order
  std::vector<std::vector<int64_t>> counts = {};  ///< by axis, by window: what to divide by beside; empty: nothing

  [[nodiscard]] int64_t taps() const;
};

/// The node as such a call of floats on a CUDA device whose every size is known and whose windows are small. Of a max
/// pool it stands for the first result. Nothing for others.
[[nodiscard]] std::optional<WindowCall> window_call(const ir::Graph& graph, const ir::Node& node,
                                                    const PassContext& context);

/// The dim along which a generated kernel has neighbours of input and result, given both types: that of the channels or
/// the last one. Nothing where their neighbours lie along different dims: the call is left to the library.
[[nodiscard]] std::optional<size_t> window_lanes(const WindowCall& call, const ir::Type& input, const ir::Type& result);

/// The type of all elements of all windows, in f32: the sizes of the result, then a dim of taps for each axis; windows
/// lie in the order of the result's elements.
[[nodiscard]] ir::Type windows_type(const WindowCall& call, const ir::Type& result);

}  // namespace sinter::passes
