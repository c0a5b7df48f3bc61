#include "compiler/passes/expand_windows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/passes/reduction_shape.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/window_call.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Builds what stands for one call.
class Expansion {
 public:
  Expansion(Rewriter& rewrite, const Node& node, const WindowCall& call, size_t lanes)
      : rewrite_(rewrite),
        call_(call),
        lanes_(lanes),
        result_(rewrite.old().type(node.results[0])),
        first_axis_(result_.rank() - call.axes.size()),
        scope_(node.scope) {}

  ValueId run() {
    ValueId elements = wide(windows(padded(rewrite_.get(call_.input))));
    if (call_.weight) {
      elements = add(Primitive{op_named("mul")}, {{elements}, {weights()}}, windows_type(call_, result_));
    }
    ValueId joined = join_taps(elements);
    if (call_.kind == WindowCall::Kind::mean) joined = divided(joined);
    if (call_.bias) {
      joined = add(Primitive{op_named("add")}, {{joined}, {bias()}}, like_result(DType::f32));
    }
    return add(Primitive{op_named("cast")}, {{joined}}, result_);
  }

 private:
  ValueId add(Payload payload, std::vector<Arg> args, Type type) {
    return rewrite_.add(std::move(payload), std::move(args), std::move(type), scope_);
  }

  [[nodiscard]] const Type& type(ValueId value) const { return rewrite_.next().type(value); }

  [[nodiscard]] Type like_result(DType dtype) const { return {dtype, result_.sizes, result_.strides, result_.device}; }

  /// `count` elements along a dim, of what changes no window.
  Arg block(ValueId like, size_t dim, int64_t count) {
    std::vector<Dim> sizes = type(like).sizes;
    sizes[dim] = count;
    const double number = call_.kind == WindowCall::Kind::largest ? -std::numeric_limits<double>::infinity() : 0.0;
    return {add(Primitive{op_named("cast")}, {{number}}, dense_like(result_, std::move(sizes)))};
  }

  ValueId padded(ValueId image) {
    for (size_t i = call_.axes.size(); i-- > 0;) {
      const WindowAxis& axis = call_.axes[i];
      if (axis.padding == 0 && axis.after() == 0) continue;
      const size_t dim = first_axis_ + i;
      std::vector<Dim> sizes = type(image).sizes;
      sizes[dim] = axis.padding + axis.size + axis.after();
      std::vector<Arg> parts;
      if (axis.padding > 0) parts.push_back(block(image, dim, axis.padding));
      parts.push_back({image});
      if (axis.after() > 0) parts.push_back(block(image, dim, axis.after()));
      image = add(Join{static_cast<uint32_t>(dim)}, std::move(parts), dense_like(result_, std::move(sizes)));
    }
    return image;
  }

  /// The elements of every window, each as often as windows cover it.
  ValueId windows(ValueId image) {
    Type view{result_.dtype, windows_type(call_, result_).sizes, type(image).strides, result_.device};
    for (size_t i = 0; i < call_.axes.size(); ++i) {
      const Dim step = view.strides[first_axis_ + i];
      view.strides.push_back(step * call_.axes[i].dilation);
      view.strides[first_axis_ + i] = step * call_.axes[i].stride;
    }
    return add(View{0}, {{image}}, std::move(view));
  }

  ValueId wide(ValueId elements) {
    if (!is_half(result_.dtype)) return elements;
    return add(Primitive{op_named("cast")}, {{elements}}, windows_type(call_, result_));
  }

  /// The weights in f32, so that they broadcast to all windows. Where neighbours are channels, tap by tap, which is a
  /// copy: kernels read one weight of neighbouring channels at a time.
  ValueId weights() {
    ValueId weight = rewrite_.get(*call_.weight);
    const bool by_tap = lanes_ + 1 == first_axis_;
    Type wanted = type(weight);
    wanted.dtype = DType::f32;
    if (by_tap) {
      wanted.strides = contiguous_strides(wanted.sizes);
      for (Dim& stride : wanted.strides) stride = stride * wanted.sizes[0].value();
      wanted.strides[0] = 1;
    } else if (!wanted.is_dense()) {
      wanted.strides = contiguous_strides(wanted.sizes);
    }
    if (wanted != type(weight)) weight = add(Primitive{op_named("cast")}, {{weight}}, wanted);
    Type seen{DType::f32, {wanted.sizes[0]}, {wanted.strides[0]}, wanted.device};
    for (size_t i = 0; i < call_.axes.size(); ++i) {
      seen.sizes.emplace_back(1);
      seen.strides.emplace_back(1);
    }
    for (size_t i = 0; i < call_.axes.size(); ++i) {
      seen.sizes.push_back(wanted.sizes[2 + i]);
      seen.strides.push_back(wanted.strides[2 + i]);
    }
    return add(View{0}, {{weight}}, std::move(seen));
  }

  ValueId join_taps(ValueId elements) {
    Reduce reduce{reduction_named(call_.kind == WindowCall::Kind::largest ? "max" : "sum"), {}};
    Type joined = like_result(DType::f32);
    for (size_t i = 0; i < call_.axes.size(); ++i) {
      if (call_.axes[i].taps > 1) reduce.dims.push_back(static_cast<uint32_t>(result_.rank() + i));
      joined.sizes.emplace_back(1);
      joined.strides.emplace_back(1);
    }
    const ValueId value = reduce.dims.empty() ? elements : add(std::move(reduce), {{elements}}, std::move(joined));
    return add(View{0}, {{value}}, like_result(DType::f32));
  }

  /// A quotient, which is a product with the reciprocal where that is exact.
  ValueId divided(ValueId sum) {
    int exponent = 0;
    const std::optional<Arg> counts = counted_elements();
    const bool exact = !counts && std::abs(std::frexp(call_.divisor, &exponent)) == 0.5;
    const Arg number{exact ? 1 / call_.divisor : call_.divisor};
    return add(Primitive{op_named(exact ? "mul" : "ratio")}, {{sum}, counts.value_or(number)}, like_result(DType::f32));
  }

  /// The elements that count of each window, where these are not as many everywhere.
  std::optional<Arg> counted_elements() {
    std::optional<Arg> product;
    for (size_t i = 0; i < call_.counts.size(); ++i) {
      if (call_.counts[i].empty()) continue;
      const Arg along = counts_along(i);
      const Arg factor = product.value_or(Arg{call_.divisor});
      std::vector<Dim> sizes = rewrite_.next().type(*along.value()).sizes;
      if (product) sizes[0] = rewrite_.next().type(*product->value()).sizes[0];
      product = Arg{add(Primitive{op_named("mul")}, {along, factor}, contiguous(DType::f32, sizes, result_.device))};
    }
    return product;
  }

  /// The counts of one axis as blocks of equal numbers side by side, so that they broadcast to the result.
  Arg counts_along(size_t axis) {
    const std::vector<int64_t>& counts = call_.counts[axis];
    std::vector<Dim> sizes(call_.axes.size(), Dim(1));
    std::vector<Arg> blocks;
    for (size_t begin = 0; begin < counts.size();) {
      size_t end = begin;
      while (end < counts.size() && counts[end] == counts[begin]) ++end;
      sizes[axis] = static_cast<int64_t>(end - begin);
      blocks.push_back({add(Primitive{op_named("cast")}, {{static_cast<double>(counts[begin])}},
                            contiguous(DType::f32, sizes, result_.device))});
      begin = end;
    }
    sizes[axis] = static_cast<int64_t>(counts.size());
    return {add(Join{static_cast<uint32_t>(axis)}, std::move(blocks), contiguous(DType::f32, sizes, result_.device))};
  }

  ValueId bias() {
    const ValueId bias = rewrite_.get(*call_.bias);
    Type seen = type(bias);
    for (size_t i = 0; i < call_.axes.size(); ++i) {
      seen.sizes.emplace_back(1);
      seen.strides.emplace_back(1);
    }
    const ValueId view = add(View{0}, {{bias}}, seen);
    if (seen.dtype == DType::f32) return view;
    return add(Primitive{op_named("cast")}, {{view}}, contiguous(DType::f32, seen.sizes, seen.device));
  }

  Rewriter& rewrite_;
  const WindowCall& call_;
  size_t lanes_;
  Type result_;
  size_t first_axis_;
  ScopeId scope_;
};

/// Dims of the taps.
std::vector<uint32_t> tap_dims(const Type& windows, size_t axes) {
  std::vector<uint32_t> dims(axes);
  std::iota(dims.begin(), dims.end(), static_cast<uint32_t>(windows.rank() - axes));
  return dims;
}

/// The call where a generated kernel takes its place.
std::optional<WindowCall> expandable(const Graph& graph, const Node& node, const std::vector<uint32_t>& uses,
                                     const PassContext& context) {
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (graph.value(node.results[i]).alias || (i > 0 && uses[node.results[i].index] > 0)) return std::nullopt;
  }
  auto call = window_call(graph, node, context);
  if (!call) return std::nullopt;
  const Type windows = windows_type(*call, graph.type(node.results[0]));
  const bool split = reduction_split(windows, tap_dims(windows, call->axes.size()), context.device).has_value();
  return split ? std::nullopt : call;
}

}  // namespace

PassResult expand_windows(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || context.generic_sizes) return {};
  const std::vector<uint32_t> uses = use_counts(graph);
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto call = expandable(graph, node, uses, context);
    if (!call) return std::nullopt;
    const Type& input = rewrite.next().type(rewrite.get(call->input));
    const auto lanes = window_lanes(*call, input, graph.type(node.results[0]));
    return lanes ? std::optional(Expansion(rewrite, node, *call, *lanes).run()) : std::nullopt;
  });
}

}  // namespace sinter::passes
