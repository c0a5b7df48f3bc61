#include "compiler/passes/window_call.h"

#include <algorithm>

#include "compiler/kernel/windows.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/pointwise.h"
#include "compiler/passes/reduction_shape.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr size_t convolution_arguments = 9;  ///< up to the groups

using Numbers = std::vector<int64_t>;

bool is_false(const Arg& arg) {
  const auto* flag = std::get_if<bool>(&arg.data);
  return flag != nullptr && !*flag;
}

bool is_plain_float(const Type& type) { return is_half(type.dtype) || type.dtype == DType::f32; }

/// The axes of `input` and `result`; nothing where they are no images of equal other dims.
std::optional<std::vector<WindowAxis>> image_axes(const Type& input, const Type& result, size_t count) {
  const size_t rank = result.rank();
  if (input.rank() != rank || rank <= count || input.dtype != result.dtype) return std::nullopt;
  const auto others = static_cast<std::ptrdiff_t>(rank - count);
  if (!std::equal(input.sizes.begin(), input.sizes.begin() + others, result.sizes.begin())) return std::nullopt;
  std::vector<WindowAxis> axes(count);
  for (size_t i = 0; i < count; ++i) {
    axes[i].size = input.sizes[rank - count + i].value();
    axes[i].outputs = result.sizes[rank - count + i].value();
  }
  return axes;
}

/// Sets a number of every axis.
void set_all(std::vector<WindowAxis>& axes, int64_t WindowAxis::* member, const Numbers& numbers) {
  for (size_t i = 0; i < axes.size(); ++i) axes[i].*member = numbers[i];
}

/// Reads kernel sizes, strides (the kernel's sizes where the list is empty) and padding from three arguments.
bool read_pool(std::vector<WindowAxis>& axes, const Node& node) {
  if (node.args.size() < 4) return false;
  const auto taps = integers_per_axis(node.args[1], axes.size());
  const bool own_stride = node.args[2].list() != nullptr && !node.args[2].list()->empty();
  const auto stride = own_stride ? integers_per_axis(node.args[2], axes.size()) : taps;
  const auto padding = integers_per_axis(node.args[3], axes.size());
  if (!taps || !stride || !padding) return false;
  set_all(axes, &WindowAxis::taps, *taps);
  set_all(axes, &WindowAxis::stride, *stride);
  set_all(axes, &WindowAxis::padding, *padding);
  return true;
}

/// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)
std::optional<WindowCall> max_pool(const Node& node, std::vector<WindowAxis> axes) {
  if (node.args.size() < 5 || !read_pool(axes, node)) return std::nullopt;
  const auto dilation = integers_per_axis(node.args[4], axes.size());
  if (!dilation) return std::nullopt;
  set_all(axes, &WindowAxis::dilation, *dilation);
  return WindowCall{WindowCall::Kind::largest, *node.args[0].value(), {}, {}, 1, std::move(axes)};
}

/// How many elements of each window ATen counts along an axis: all that lie in the input, or in its padding too.
std::vector<int64_t> counted(const WindowAxis& axis, bool with_padding) {
  std::vector<int64_t> counts;
  for (int64_t output = 0; output < axis.outputs; ++output) {
    const int64_t begin = output * axis.stride - axis.padding;
    const int64_t end = std::min(begin + axis.taps, axis.size + (with_padding ? axis.padding : 0));
    counts.push_back(end - (with_padding ? begin : std::max<int64_t>(begin, 0)));
  }
  return counts;
}

/// avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
std::optional<WindowCall> average_pool(const Node& node, std::vector<WindowAxis> axes) {
  if (node.args.size() < 7 || !read_pool(axes, node)) return std::nullopt;
  WindowCall call{WindowCall::Kind::mean, *node.args[0].value(), {}, {}, 1, std::move(axes)};
  if (const auto divisor = integer_in(node.args[6])) {
    call.divisor = static_cast<double>(*divisor);
    return *divisor == 0 ? std::nullopt : std::optional(std::move(call));
  }
  if (!node.args[6].is_none()) return std::nullopt;
  for (const WindowAxis& axis : call.axes) {
    std::vector<int64_t> counts = counted(axis, !is_false(node.args[5]));
    if (counts.empty() || std::ranges::min(counts) < 1) return std::nullopt;
    if (std::ranges::min(counts) == std::ranges::max(counts)) {
      call.divisor *= static_cast<double>(counts.front());
      counts.clear();
    }
    call.counts.push_back(std::move(counts));
  }
  return call;
}

/// _adaptive_avg_pool2d(self, output_size), where sizes divide.
std::optional<WindowCall> adaptive_pool(const Node& node, std::vector<WindowAxis> axes) {
  for (WindowAxis& axis : axes) {
    if (axis.outputs == 0 || axis.size % axis.outputs != 0) return std::nullopt;
    axis.taps = axis.stride = axis.size / axis.outputs;
  }
  WindowCall call{WindowCall::Kind::mean, *node.args[0].value(), {}, {}, 1, std::move(axes)};
  call.divisor = static_cast<double>(call.taps());
  return call;
}

/// A weight with one filter for each of the channels.
bool is_depthwise_weight(const Type& weight, int64_t channels, size_t axes) {
  return weight.rank() == axes + 2 && weight.is_static() && weight.sizes[0] == Dim(channels) &&
         weight.sizes[1] == Dim(1);
}

std::optional<WindowCall> depthwise(const Graph& graph, const Node& node, const Convolution& convolution) {
  const Type& input = graph.type(convolution.input);
  const Type& result = graph.type(node.results[0]);
  const Type& weight = graph.type(convolution.weight);
  if (input.rank() < 3 || input.rank() > 4 || node.args.size() < convolution_arguments) return std::nullopt;
  auto axes = image_axes(input, result, input.rank() - 2);
  if (!axes || !is_false(node.args[convolution_transposed])) return std::nullopt;
  if (!is_depthwise_weight(weight, input.sizes[1].value(), axes->size())) return std::nullopt;
  const auto stride = integers_per_axis(node.args[convolution_stride], axes->size());
  const auto padding = integers_per_axis(node.args[convolution_padding], axes->size());
  const auto dilation = integers_per_axis(node.args[convolution_dilation], axes->size());
  if (!stride || !padding || !dilation || weight.dtype != input.dtype) return std::nullopt;
  set_all(*axes, &WindowAxis::stride, *stride);
  set_all(*axes, &WindowAxis::padding, *padding);
  set_all(*axes, &WindowAxis::dilation, *dilation);
  for (size_t i = 0; i < axes->size(); ++i) (*axes)[i].taps = weight.sizes[2 + i].value();
  WindowCall call{WindowCall::Kind::product, convolution.input, convolution.weight, convolution.bias, 1,
                  *std::move(axes)};
  if (!is_kernel_operand(graph, {*call.weight})) return std::nullopt;
  if (!call.bias) return call;
  const Type& bias = graph.type(*call.bias);
  const bool reads_bias = is_kernel_operand(graph, {*call.bias}) && bias.rank() == 1 && bias.dtype == input.dtype;
  return reads_bias ? std::optional(std::move(call)) : std::nullopt;
}

std::optional<WindowCall> pool(const Graph& graph, const Node& node) {
  const std::string_view name = base_name(node.as<Call>()->op);
  if (node.args.empty() || node.args[0].value() == nullptr) return std::nullopt;
  auto axes = image_axes(graph.type(*node.args[0].value()), graph.type(node.results[0]), 2);
  if (!axes) return std::nullopt;
  if (name == "aten::max_pool2d_with_indices") return max_pool(node, *std::move(axes));
  if (name == "aten::avg_pool2d") return average_pool(node, *std::move(axes));
  if (name == "aten::_adaptive_avg_pool2d") return adaptive_pool(node, *std::move(axes));
  return std::nullopt;
}

bool is_small_window(const WindowCall& call) {
  const bool valid = std::ranges::all_of(call.axes, [](const WindowAxis& axis) {
    return axis.size > 0 && axis.outputs > 0 && axis.taps > 0 && axis.stride > 0 && axis.dilation > 0 &&
           axis.padding >= 0 && axis.taps <= kernel::most_window_taps;
  });
  return valid && call.taps() <= kernel::most_window_points;
}

}  // namespace

int64_t WindowCall::taps() const {
  int64_t count = 1;
  for (const WindowAxis& axis : axes) count *= axis.taps;
  return count;
}

std::optional<WindowCall> window_call(const Graph& graph, const Node& node, const PassContext& context) {
  if (context.device.backend != Backend::cuda || context.generic_sizes) return std::nullopt;
  const auto* call = node.as<Call>();
  if (call == nullptr || call->random || call->impure || node.results.empty()) return std::nullopt;
  const Type& result = graph.type(node.results[0]);
  if (!is_plain_float(result) || !is_kernel_result(graph, result) || result.numel() == 0) return std::nullopt;
  if (node.args.empty() || node.args[0].value() == nullptr || !is_kernel_operand(graph, node.args[0])) {
    return std::nullopt;
  }
  const auto convolution = convolution_of(graph, node);
  if (convolution && !convolution->depthwise) return std::nullopt;
  auto found = convolution ? depthwise(graph, node, *convolution) : pool(graph, node);
  return found && is_small_window(*found) ? found : std::nullopt;
}

std::optional<size_t> window_lanes(const WindowCall& call, const Type& input, const Type& result) {
  const size_t rank = result.rank();
  std::optional<size_t> lanes;
  for (size_t dim = 0; dim < rank; ++dim) {
    if (result.sizes[dim] != Dim(1) && result.strides[dim] == Dim(1)) lanes = dim;
  }
  if (!lanes || input.strides[*lanes] != Dim(1)) return std::nullopt;
  const bool channels = *lanes + call.axes.size() + 1 == rank;
  return channels || *lanes + 1 == rank ? lanes : std::nullopt;
}

Type windows_type(const WindowCall& call, const Type& result) {
  Type type{DType::f32, result.sizes, {}, result.device};
  for (const Dim& stride : result.strides) type.strides.push_back(stride * call.taps());
  int64_t inside = call.taps();
  for (const WindowAxis& axis : call.axes) {
    inside /= axis.taps;
    type.sizes.emplace_back(axis.taps);
    type.strides.emplace_back(inside);
  }
  return type;
}

}  // namespace sinter::passes
