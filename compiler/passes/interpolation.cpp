#include "compiler/passes/interpolation.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/passes/aten.h"
#include "compiler/passes/layout_rules.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// A vector of weights has as many constants.
constexpr int64_t most_repetitions = 16;

/// How often pixels are repeated along height and width.
using Factors = std::array<int64_t, 2>;

std::optional<int64_t> factor_of(const Type& image, const Type& result, size_t dim, const Arg& scale) {
  const int64_t in = image.sizes[dim].value(), out = result.sizes[dim].value();
  const int64_t factor = out / in;
  if (out % in != 0 || factor > most_repetitions) return std::nullopt;
  const auto* given = std::get_if<double>(&scale.data);
  const bool agrees = given == nullptr || *given <= 0 || *given == static_cast<double>(factor);
  return agrees ? std::optional(factor) : std::nullopt;
}

std::optional<Factors> factors_of(const Graph& graph, const Node& node) {
  constexpr size_t align_corners = 2, first_scale = 3;
  if (call_named(node, "aten::upsample_bilinear2d", 5) == nullptr || node.args[0].value() == nullptr)
    return std::nullopt;
  if (node.args[align_corners].data != Arg{false}.data || graph.value(node.results[0]).alias) return std::nullopt;
  const Type& image = graph.type(*node.args[0].value());
  const Type& result = graph.type(node.results[0]);
  if (image.rank() != 4 || result.rank() != 4 || !image.is_static() || !result.is_static()) return std::nullopt;
  const bool floats = is_half(result.dtype) || result.dtype == DType::f32;
  if (!floats || image.dtype != result.dtype || !result.is_dense()) return std::nullopt;
  if (result.numel() == 0 || image.numel() == 0) return std::nullopt;
  const auto height = factor_of(image, result, 2, node.args[first_scale]);
  const auto width = factor_of(image, result, 3, node.args[first_scale + 1]);
  if (!height || !width || *height * *width == 1) return std::nullopt;
  return Factors{*height, *width};
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
  Interpolation(Rewriter& rewrite, const Node& node, const Factors& factors)
      : rewrite_(rewrite),
        node_(node),
        factors_(factors),
        result_(rewrite.old().type(node.results[0])),
        channels_last_(result_.strides[1] == Dim(1) && result_.sizes[1] != Dim(1)) {}

  ValueId run() {
    const ValueId image = rewrite_.get(*node_.args[0].value());
    const ValueId framed = repeat_border(repeat_border(image, 2), 3);
    const Weights rows = weights(3, factors_[0]), columns = weights(5, factors_[1]);
    const Arg above = between({neighbour(framed, 0, 0)}, {neighbour(framed, 0, 1)}, columns);
    const Arg below = between({neighbour(framed, 1, 0)}, {neighbour(framed, 1, 1)}, columns);
    return cut_out(between(above, below, rows));
  }

 private:
  ValueId add(std::string_view op, std::vector<Arg> args, Type type) {
    return rewrite_.add(Primitive{op_named(op)}, std::move(args), std::move(type), node_.scope);
  }
  ValueId view(ValueId value, Type type, int64_t offset) {
    return rewrite_.add(View{offset}, {{value}}, std::move(type), node_.scope);
  }
  [[nodiscard]] const Type& type(ValueId value) const { return rewrite_.next().type(value); }

  /// A dense type whose dims lie in the order of the result's: [image, channel, rows..., columns...].
  [[nodiscard]] Type laid_out(DType dtype, const std::vector<int64_t>& sizes) const {
    Type type = contiguous(dtype, std::vector<Dim>(sizes.begin(), sizes.end()), result_.device);
    return channels_last_ ? channels_last(std::move(type)) : type;
  }
  /// [image, channel, H + 1, factor, W + 1, factor]: a place for every pair of neighbours, the border's with itself.
  [[nodiscard]] std::vector<int64_t> places() const {
    const auto sizes = result_.static_sizes();
    return {sizes[0], sizes[1], sizes[2] / factors_[0] + 1, factors_[0], sizes[3] / factors_[1] + 1, factors_[1]};
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

  /// Of every place the pixel above or below it, to its left or right, in f32.
  ValueId neighbour(ValueId framed, int64_t row, int64_t column) {
    const Type& pixels = type(framed);
    const std::vector<int64_t> sizes = places();
    Type seen = laid_out(result_.dtype, sizes);
    seen.strides = {pixels.strides[0], pixels.strides[1], pixels.strides[2], 0, pixels.strides[3], 0};
    const int64_t offset = row * pixels.strides[2].value() + column * pixels.strides[3].value();
    return add("cast", {{view(framed, std::move(seen), offset)}}, laid_out(DType::f32, sizes));
  }

  /// What the two of a pair of neighbours count for, along one dim of the places.
  struct Weights {
    Arg first, second;
  };
  Weights weights(size_t dim, int64_t factor) {
    std::vector<double> first, second;
    for (int64_t place = 0; place < factor; ++place) {
      second.push_back(share_of_second(place, factor));
      first.push_back(1 - second.back());
    }
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

  Arg between(const Arg& first, const Arg& second, const Weights& weights) {
    const Type whole = laid_out(DType::f32, places());
    const ValueId part = add("mul", {first, weights.first}, Type(whole));
    return {add("fma", {second, weights.second, {part}}, Type(whole))};
  }

  /// The result: all places but those outside the border.
  ValueId cut_out(const Arg& all) {
    const std::vector<int64_t> sizes = places();
    const ValueId rounded = add("cast", {all}, laid_out(result_.dtype, sizes));
    const Type merged = laid_out(result_.dtype, {sizes[0], sizes[1], sizes[2] * sizes[3], sizes[4] * sizes[5]});
    Type seen = result_;
    seen.strides = merged.strides;
    const int64_t offset =
        first_place(factors_[0]) * merged.strides[2].value() + first_place(factors_[1]) * merged.strides[3].value();
    return add("cast", {{view(rounded, std::move(seen), offset)}}, Type(result_));
  }

  Rewriter& rewrite_;
  const Node& node_;
  const Factors factors_;
  const Type& result_;
  const bool channels_last_;
};

}  // namespace

std::optional<ValueId> interpolated(Rewriter& rewrite, const Node& node) {
  const auto factors = factors_of(rewrite.old(), node);
  return factors ? std::optional(Interpolation(rewrite, node, *factors).run()) : std::nullopt;
}

}  // namespace sinter::passes
