#include "compiler/passes/interpolation.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/passes/aten.h"
#include "compiler/passes/layout_rules.h"
#include "compiler/passes/sampling.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// A vector of weights has as many constants.
constexpr int64_t most_repetitions = 16;

/// An op, which is called with an image, the sizes of the result, `align_corners` and a scale or none for each axis.
struct InterpolationRow {
  std::string_view op;
  size_t axes;
  bool linear;  ///< two neighbours along each axis
};
constexpr std::array interpolation_rows = {
    InterpolationRow{"aten::upsample_linear1d", 1, true}, InterpolationRow{"aten::upsample_bilinear2d", 2, true},
    InterpolationRow{"aten::upsample_trilinear3d", 3, true}, InterpolationRow{"aten::upsample_bicubic2d", 2, false}};
constexpr size_t align_corners = 2, first_scale = 3;

const InterpolationRow* interpolation_row(const Node& node) {
  const auto* call = node.as<Call>();
  if (call == nullptr) return nullptr;
  const auto* found = std::ranges::find(interpolation_rows, base_name(call->op), &InterpolationRow::op);
  return found == interpolation_rows.end() ? nullptr : found;
}

/// How often pixels are repeated along each axis.
using Factors = std::vector<int64_t>;

std::optional<int64_t> factor_of(const Type& image, const Type& result, size_t dim, const Arg& scale) {
  const int64_t in = image.sizes[dim].value(), out = result.sizes[dim].value();
  const int64_t factor = out / in;
  if (out % in != 0 || factor > most_repetitions) return std::nullopt;
  const auto* given = std::get_if<double>(&scale.data);
  const bool agrees = given == nullptr || *given <= 0 || *given == static_cast<double>(factor);
  return agrees ? std::optional(factor) : std::nullopt;
}

/// The number of axes of a call that kernels can compute, whatever its sizes are.
std::optional<size_t> axes_of(const Graph& graph, const Node& node) {
  const InterpolationRow* row = interpolation_row(node);
  if (row == nullptr || !row->linear || call_named(node, row->op, first_scale + row->axes) == nullptr) {
    return std::nullopt;
  }
  const bool is_known = std::holds_alternative<bool>(node.args[align_corners].data);
  if (!is_known || !makes_image_of_image(graph, node)) return std::nullopt;
  const Type& image = graph.type(*node.args[0].value());
  const Type& result = graph.type(node.results[0]);
  const bool floats = is_half(result.dtype) || result.dtype == DType::f32;
  const bool fits = floats && image.dtype == result.dtype && image.rank() == 2 + row->axes;
  return fits ? std::optional(row->axes) : std::nullopt;
}

std::optional<Factors> factors_of(const Graph& graph, const Node& node) {
  const auto axes = axes_of(graph, node);
  if (!axes || node.args[align_corners].data != Arg{false}.data) return std::nullopt;
  const Type& image = graph.type(*node.args[0].value());
  const Type& result = graph.type(node.results[0]);
  Factors factors;
  for (size_t axis = 0; axis < *axes; ++axis) {
    const auto factor = factor_of(image, result, 2 + axis, node.args[first_scale + axis]);
    if (!factor) return std::nullopt;
    factors.push_back(*factor);
  }
  const bool grows = std::ranges::any_of(factors, [](int64_t factor) { return factor > 1; });
  return grows ? std::optional(factors) : std::nullopt;
}

/// Place i of the result lies between pixels m / factor - 1 and m / factor of the image, m being i + first_place.
int64_t first_place(int64_t factor) { return (factor + 1) / 2; }
/// How far on the way from the first to the second, by m % factor.
double share_of_second(int64_t place, int64_t factor) {
  const double middle = factor % 2 == 0 ? 0.5 : 0;
  return (static_cast<double>(place) + middle) / static_cast<double>(factor);
}

class Interpolation {
 public:
  Interpolation(Rewriter& rewrite, const Node& node, Factors factors)
      : rewrite_(rewrite),
        node_(node),
        factors_(std::move(factors)),
        result_(rewrite.old().type(node.results[0])),
        channels_last_(result_.strides[1] == Dim(1) && result_.sizes[1] != Dim(1)) {}

  ValueId run() {
    ValueId framed = rewrite_.get(*node_.args[0].value());
    for (size_t axis = 0; axis < factors_.size(); ++axis) framed = repeat_border(framed, 2 + axis);
    for (size_t axis = 0; axis < factors_.size(); ++axis) weights_.push_back(weights(axis));
    return cut_out(blended(framed, 0, 0));
  }

 private:
  ValueId add(std::string_view op, std::vector<Arg> args, Type type) {
    return rewrite_.add(Primitive{op_named(op)}, std::move(args), std::move(type), node_.scope);
  }
  ValueId view(ValueId value, Type type, int64_t offset) {
    return rewrite_.add(View{offset}, {{value}}, std::move(type), node_.scope);
  }
  [[nodiscard]] const Type& type(ValueId value) const { return rewrite_.next().type(value); }

  /// A dense type whose dims lie in the order of the result's: image, channel, those of each axis.
  [[nodiscard]] Type laid_out(DType dtype, const std::vector<int64_t>& sizes) const {
    Type type = contiguous(dtype, std::vector<Dim>(sizes.begin(), sizes.end()), result_.device);
    return channels_last_ ? channels_last(std::move(type)) : type;
  }
  /// Image, channel, then for each axis its pixels and one more, and its factor: a place for every pair of neighbours,
  /// those of the border with themselves among them.
  [[nodiscard]] std::vector<int64_t> places() const {
    const auto sizes = result_.static_sizes();
    std::vector<int64_t> places = {sizes[0], sizes[1]};
    for (size_t axis = 0; axis < factors_.size(); ++axis) {
      places.insert(places.end(), {sizes[2 + axis] / factors_[axis] + 1, factors_[axis]});
    }
    return places;
  }

  /// The image with its first and last line along an axis once more.
  ValueId repeat_border(ValueId image, size_t dim) {
    Type line = type(image);
    const int64_t size = line.sizes[dim].value(), step = line.strides[dim].value();
    line.sizes[dim] = 1;
    auto sizes = type(image).static_sizes();
    sizes[dim] += 2;
    const std::vector<Arg> parts = {{view(image, line, 0)}, {image}, {view(image, line, (size - 1) * step)}};
    return rewrite_.add(Join{static_cast<uint32_t>(dim)}, parts, laid_out(result_.dtype, sizes), node_.scope);
  }

  /// Of every place the sum of its neighbours along this axis and those behind it, `offset` elements from the first of
  /// them.
  Arg blended(ValueId framed, size_t axis, int64_t offset) {
    if (axis == factors_.size()) return {neighbour(framed, offset)};
    const int64_t step = type(framed).strides[2 + axis].value();
    const Arg first = blended(framed, axis + 1, offset);
    const Arg second = blended(framed, axis + 1, offset + step);
    const Type whole = laid_out(DType::f32, places());
    const ValueId part = add("mul", {first, weights_[axis].first}, Type(whole));
    return {add("fma", {second, weights_[axis].second, {part}}, Type(whole))};
  }

  /// Of every place the pixel that lies `offset` elements from its first neighbour, in f32.
  ValueId neighbour(ValueId framed, int64_t offset) {
    Type seen = laid_out(result_.dtype, places());
    const Type& pixels = type(framed);
    seen.strides = {pixels.strides[0], pixels.strides[1]};
    for (size_t axis = 0; axis < factors_.size(); ++axis) {
      seen.strides.insert(seen.strides.end(), {pixels.strides[2 + axis], Dim(0)});
    }
    return add("cast", {{view(framed, std::move(seen), offset)}}, laid_out(DType::f32, places()));
  }

  /// What the two of a pair of neighbours count for.
  struct Weights {
    Arg first, second;
  };
  Weights weights(size_t axis) {
    std::vector<double> first, second;
    for (int64_t place = 0; place < factors_[axis]; ++place) {
      second.push_back(share_of_second(place, factors_[axis]));
      first.push_back(1 - second.back());
    }
    const size_t dim = 3 + 2 * axis;  // of the places
    return {{vector(first, dim)}, {vector(second, dim)}};
  }
  ValueId vector(const std::vector<double>& numbers, size_t dim) {
    std::vector<Dim> sizes(places().size(), Dim(1));
    std::vector<Arg> parts;
    for (const double number : numbers) {
      parts.push_back({add("cast", {{number}}, contiguous(DType::f32, sizes, result_.device))});
    }
    if (parts.size() == 1) return *parts[0].value();
    sizes[dim] = static_cast<int64_t>(numbers.size());
    return rewrite_.add(Join{static_cast<uint32_t>(dim)}, std::move(parts),
                        contiguous(DType::f32, std::move(sizes), result_.device), node_.scope);
  }

  /// The result: all places but those outside the border.
  ValueId cut_out(const Arg& all) {
    const std::vector<int64_t> sizes = places();
    const ValueId rounded = add("cast", {all}, laid_out(result_.dtype, sizes));
    std::vector<int64_t> merged = {sizes[0], sizes[1]};
    for (size_t axis = 0; axis < factors_.size(); ++axis) merged.push_back(sizes[2 + 2 * axis] * factors_[axis]);
    Type seen = result_;
    seen.strides = laid_out(result_.dtype, merged).strides;
    int64_t offset = 0;
    for (size_t axis = 0; axis < factors_.size(); ++axis) {
      offset += first_place(factors_[axis]) * seen.strides[2 + axis].value();
    }
    return add("cast", {{view(rounded, std::move(seen), offset)}}, Type(result_));
  }

  Rewriter& rewrite_;
  const Node& node_;
  const Factors factors_;
  const Type& result_;
  const bool channels_last_;
  std::vector<Weights> weights_;  ///< by axis
};

/// How far apart neighbours lie whose first and last ones are those of the image.
float aligned_step(int64_t in, int64_t out) {
  return out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1) : 0.0F;
}

ValueId sampled(Rewriter& rewrite, const Node& node, size_t axes) {
  const Type& image = rewrite.old().type(*node.args[0].value());
  const Type& result = rewrite.old().type(node.results[0]);
  const bool aligns = std::get<bool>(node.args[align_corners].data);
  Sampler sampler(rewrite, node);
  for (size_t axis = 0; axis < axes; ++axis) {
    const int64_t in = image.sizes[2 + axis].value(), out = result.sizes[2 + axis].value();
    const float step = aligns ? aligned_step(in, out) : step_of<float>(in, out, node.args[first_scale + axis]);
    sampler.linear(step, !aligns);
  }
  return sampler.run();
}

}  // namespace

bool interpolates(const Node& node) { return interpolation_row(node) != nullptr && node.args.size() > 2; }

bool makes_image_of_image(const Graph& graph, const Node& node) {
  if (node.args[0].value() == nullptr || graph.value(node.results[0]).alias) return false;
  const Type& image = graph.type(*node.args[0].value());
  const Type& result = graph.type(node.results[0]);
  if (image.rank() < 3 || image.rank() != result.rank() || !image.is_static() || !result.is_static()) return false;
  return result.is_dense() && result.numel() > 0 && image.numel() > 0;
}

std::optional<ValueId> interpolated(Rewriter& rewrite, const Node& node) {
  const auto factors = factors_of(rewrite.old(), node);
  if (factors) return Interpolation(rewrite, node, *factors).run();
  const auto axes = axes_of(rewrite.old(), node);
  return axes ? std::optional(sampled(rewrite, node, *axes)) : std::nullopt;
}

}  // namespace sinter::passes
