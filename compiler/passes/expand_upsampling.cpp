#include "compiler/passes/expand_upsampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/passes/aten.h"
#include "compiler/passes/interpolation.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/sampling.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// An op, which is called with an image, the sizes of the result and a scale or none for each axis.
struct UpsamplingRow {
  std::string_view op;
  size_t axes;
  double shift;  ///< of a place in the result before it is scaled down
};

constexpr std::array upsampling_rows = {
    UpsamplingRow{"aten::upsample_nearest1d", 1, 0},          UpsamplingRow{"aten::upsample_nearest2d", 2, 0},
    UpsamplingRow{"aten::upsample_nearest3d", 3, 0},          UpsamplingRow{"aten::_upsample_nearest_exact1d", 1, 0.5},
    UpsamplingRow{"aten::_upsample_nearest_exact2d", 2, 0.5}, UpsamplingRow{"aten::_upsample_nearest_exact3d", 3, 0.5},
};

const UpsamplingRow* row_of(const Node& node) {
  const auto* call = node.as<Call>();
  if (call == nullptr) return nullptr;
  const auto found = std::ranges::find(upsampling_rows, base_name(call->op), &UpsamplingRow::op);
  return found == upsampling_rows.end() || node.args.size() != 2 + found->axes ? nullptr : &*found;
}

/// The element of `in` that each place of `out` is.
template <class T>
std::vector<int64_t> elements_of(int64_t in, int64_t out, const Arg& scale, double shift) {
  const T step = step_of<T>(in, out, scale);
  std::vector<int64_t> elements;
  for (int64_t i = 0; i < out; ++i) {
    const auto place = static_cast<int64_t>(std::floor((static_cast<T>(i) + static_cast<T>(shift)) * step));
    elements.push_back(std::min(place, in - 1));
  }
  return elements;
}

/// The same, where it does not depend on how exactly that is computed.
std::optional<std::vector<int64_t>> certain_elements(int64_t in, int64_t out, const Arg& scale, double shift) {
  auto elements = elements_of<float>(in, out, scale, shift);
  return elements == elements_of<double>(in, out, scale, shift) ? std::optional(std::move(elements)) : std::nullopt;
}

/// True where place i of `out` is element i / factor of `in`.
bool repeats(int64_t in, int64_t out, const Arg& scale, double shift) {
  if (out % in != 0) return false;
  const auto elements = certain_elements(in, out, scale, shift);
  if (!elements) return false;
  for (int64_t i = 0; i < out; ++i) {
    if ((*elements)[static_cast<size_t>(i)] != i / (out / in)) return false;
  }
  return true;
}

/// How often a call repeats elements along each axis; nothing where it is none that a copy can stand for.
std::optional<std::vector<int64_t>> factors_of(const Graph& graph, const Node& node) {
  const UpsamplingRow* row = row_of(node);
  if (row == nullptr && !interpolates(node)) return std::nullopt;
  if (!makes_image_of_image(graph, node)) return std::nullopt;
  const Type& image = graph.type(*node.args[0].value());
  const Type& result = graph.type(node.results[0]);
  if (!is_kernel_dtype(result.dtype) || (row != nullptr && image.rank() != row->axes + 2)) return std::nullopt;
  std::vector<int64_t> factors;
  for (size_t dim = 2; dim < image.rank(); ++dim) {
    const int64_t in = image.sizes[dim].value();
    const int64_t out = result.sizes[dim].value();
    const bool is_single = row == nullptr && in == 1;  // all neighbours of a single pixel are it
    if (!is_single && (row == nullptr || !repeats(in, out, node.args[dim], row->shift))) return std::nullopt;
    factors.push_back(out / in);
  }
  return factors;
}

/// The result as a copy of the image, in which every axis is followed by one for its repetitions.
ValueId repeated(Rewriter& rewrite, const Node& node, const std::vector<int64_t>& factors) {
  const ValueId image = rewrite.get(*node.args[0].value());
  const Type& from = rewrite.next().type(image);
  const Type& to = rewrite.old().type(node.results[0]);
  Type view{from.dtype, {from.sizes[0], from.sizes[1]}, {from.strides[0], from.strides[1]}, from.device};
  Type copy = view;
  copy.strides = {to.strides[0], to.strides[1]};
  for (size_t axis = 0; axis < factors.size(); ++axis) {
    for (Type* type : {&view, &copy}) type->sizes.insert(type->sizes.end(), {from.sizes[2 + axis], factors[axis]});
    view.strides.insert(view.strides.end(), {from.strides[2 + axis], 0});
    copy.strides.insert(copy.strides.end(), {to.strides[2 + axis] * factors[axis], to.strides[2 + axis]});
  }
  const ValueId seen = rewrite.add(View{0}, {{image}}, std::move(view), node.scope);
  const ValueId copied = rewrite.add(Primitive{op_named("cast")}, {{seen}}, std::move(copy), node.scope);
  return rewrite.add(View{0}, {{copied}}, Type(to), node.scope);
}

/// A call that takes elements by other steps.
std::optional<ValueId> sampled(Rewriter& rewrite, const Node& node) {
  const UpsamplingRow* row = row_of(node);
  if (row == nullptr || !makes_image_of_image(rewrite.old(), node)) return std::nullopt;
  const Type& image = rewrite.old().type(*node.args[0].value());
  const Type& result = rewrite.old().type(node.results[0]);
  if (!is_kernel_dtype(result.dtype) || image.rank() != row->axes + 2) return std::nullopt;
  for (size_t dim = 2; dim < image.rank(); ++dim) {
    const int64_t in = image.sizes[dim].value(), out = result.sizes[dim].value();
    if (!certain_elements(in, out, node.args[dim], row->shift)) return std::nullopt;
  }
  Sampler sampler(rewrite, node);
  for (size_t dim = 2; dim < image.rank(); ++dim) {
    sampler.nearest(step_of<float>(image.sizes[dim].value(), result.sizes[dim].value(), node.args[dim]), row->shift);
  }
  return sampler.run();
}

}  // namespace

PassResult expand_upsampling(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || context.generic_sizes) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto factors = factors_of(graph, node);
    if (factors) return repeated(rewrite, node, *factors);
    return row_of(node) != nullptr ? sampled(rewrite, node) : interpolated(rewrite, node);
  });
}

}  // namespace sinter::passes
