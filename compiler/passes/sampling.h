#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "compiler/passes/rewriter.h"

namespace sinter::passes {

/// How far apart neighbours of `out` elements lie in `in`, as ATen computes that in floats of type T: by the scale that
/// a call was given, if it was.
template <class T>
[[nodiscard]] T step_of(int64_t in, int64_t out, const ir::Arg& scale) {
  const auto* given = std::get_if<double>(&scale.data);
  return given != nullptr && *given > 0 ? static_cast<T>(1.0 / *given) : static_cast<T>(in) / static_cast<T>(out);
}

/// An image [n, c, ...] read at computed places along each axis after the channels, as ATen's upsampling does it: by
/// gathers, in f32. The first argument of the node is the image, its result, of any dense layout, the new one.
class Sampler {
 public:
  Sampler(Rewriter& rewrite, const ir::Node& node);

  /// Adds the next axis: place i is element floor((i + shift) * step).
  void nearest(float step, double shift);
  /// Adds the next axis: place i lies at i * step, or with half pixels at (i + 1/2) * step - 1/2, between two elements.
  void linear(float step, bool half_pixels);
  /// The new image, once all axes are known.
  [[nodiscard]] ir::ValueId run();

 private:
  /// An element along an axis, and what it counts for: a vector of f32, or no value where it is all there is.
  struct Tap {
    ir::Arg position;
    ir::Arg weight;
  };

  /// A vector along the axis that comes next, with a dim of size 1 for each of those behind it.
  [[nodiscard]] ir::Type vector(ir::DType dtype) const;
  ir::Arg add(std::string_view op, std::vector<ir::Arg> args, ir::DType dtype);
  /// 0, 1, ... along the axis that comes next, in f32.
  ir::Arg counted();
  /// An f32 as a position of the axis that comes next, within the image.
  ir::Arg position(const ir::Arg& place);
  ir::Arg within(const ir::Arg& position);
  ir::Arg blended(size_t axis, std::vector<ir::Arg>& positions);
  ir::Arg gathered(const std::vector<ir::Arg>& positions);
  [[nodiscard]] ir::Type image_of(ir::DType dtype) const;

  Rewriter& rewrite_;
  const ir::Node& node_;
  const ir::Type& result_;
  std::vector<std::vector<Tap>> axes_;
};

}  // namespace sinter::passes
