#include "compiler/passes/grouped_products.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/layout_rules.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/zero_padding.h"

namespace sinter::passes {
namespace {

using namespace ir;

constexpr int64_t many_taps = 26;                        ///< cuDNN's kernels for groups end with 5x5
constexpr int64_t most_taps_of_odd_groups = 16;          ///< with more, copying takes as long as cuDNN
constexpr int64_t most_copied_bytes = int64_t{1} << 28;  ///< of the windows

constexpr int64_t least_width_of_slow_pixels = 16;  ///< below, cuDNN has a kernel for windows of one pixel

/// True where cuDNN brings images into a layout of its own and back, uses no tensor cores, or computes a group at a
/// time: 100 us at least on an H100, which products take for 40 times the image. Groups of 3x3 taps are padded to a
/// width that it has (pad_channels). Of one pixel, on an H200, 24 groups of 16 channels: 28 us for 8 x 14 x 14 pixels
/// and 128 for 8 x 56 x 56, where the products take 6 and 22.
bool is_slow(int64_t width, int64_t height, int64_t taps) {
  if (taps >= many_taps) return true;
  if (taps == 1) return width >= least_width_of_slow_pixels;
  constexpr std::array<int64_t, 5> served = {4, 8, 16, 32, 128};
  const bool padded = height == 3 && taps == 9;
  return taps <= most_taps_of_odd_groups && !padded && std::ranges::find(served, width) == served.end();
}

/// The node as a convolution over groups whose windows are worth copying.
std::optional<ImageConvolution> grouped_convolution(const Graph& graph, const Node& node) {
  auto found = image_convolution(graph, node);
  if (!found || found->groups == 1 || found->convolution.depthwise || found->convolution.bias) return std::nullopt;
  const std::vector<int64_t>& filters = found->filters;
  const Type& input = graph.type(found->convolution.input);
  const int64_t taps = filters[2] * filters[3];
  const int64_t windows = graph.type(node.results[0]).numel() / filters[0];
  const int64_t copied = windows * input.sizes[1].constant() * taps * bytes_of(input.dtype);
  const bool pays = is_slow(filters[1], filters[2], taps) && copied <= most_copied_bytes &&
                    missing_halves(filters[1]) == 0 && missing_halves(filters[0] / found->groups) == 0;
  return pays ? std::move(found) : std::nullopt;
}

class GroupedProduct {
 public:
  GroupedProduct(Rewriter& rewrite, const Node& node, const ImageConvolution& convolution)
      : rewrite_(rewrite), node_(node), convolution_(convolution), result_(rewrite.old().type(node.results[0])) {}

  ValueId run() {
    const ValueId windows = windows_in_rows();
    const ValueId filters = filters_in_columns();
    const Type product =
        contiguous(result_.dtype, {groups(), type(windows).sizes[1], type(filters).sizes[2]}, result_.device);
    Call call;
    call.op = "aten::bmm";
    return as_image(rewrite_.add(std::move(call), {{windows}, {filters}}, product, node_.scope));
  }

 private:
  [[nodiscard]] Type type(ValueId value) const { return rewrite_.next().type(value); }
  [[nodiscard]] int64_t groups() const { return convolution_.groups; }

  ValueId view(ValueId value, Type seen) { return rewrite_.add(View{0}, {{value}}, std::move(seen), node_.scope); }
  ValueId copy(ValueId value, Type into) {
    return rewrite_.add(Primitive{op_named("cast")}, {{value}}, std::move(into), node_.scope);
  }

  /// [samples, channels, height, width] -> [groups, windows, taps * channels of a group]. Windows of one pixel that lie
  /// one behind the other stay where they are.
  ValueId windows_in_rows() {
    ValueId image = rewrite_.get(convolution_.convolution.input);
    for (const uint32_t axis : {0U, 1U}) {
      const int64_t more = convolution_.padding[axis];
      if (more > 0) image = among_zeros(rewrite_, image, 2 + axis, more, more, node_.scope);
    }
    const Type from = type(image);
    const std::vector<int64_t>& filters = convolution_.filters;
    Type seen = from;
    seen.sizes = {groups(), from.sizes[0], result_.sizes[2], result_.sizes[3], filters[2], filters[3], filters[1]};
    seen.strides = {from.strides[1] * filters[1],
                    from.strides[0],
                    from.strides[2] * convolution_.stride[0],
                    from.strides[3] * convolution_.stride[1],
                    from.strides[2],
                    from.strides[3],
                    from.strides[1]};
    const int64_t row = filters[1] * filters[2] * filters[3];
    const Type rows = contiguous(from.dtype, {groups(), seen.numel() / row / groups(), row}, from.device);
    if (row == filters[1] && are_one_dim(seen, 1, 3)) {
      Type pixels = rows;
      pixels.strides = {seen.strides[0], seen.strides[3], seen.strides[6]};
      return view(image, std::move(pixels));
    }
    return view(copy(view(image, seen), contiguous(from.dtype, seen.sizes, from.device)), rows);
  }

  /// [filters, channels of a group, height, width] -> [groups, taps * channels of a group, filters of a group]
  ValueId filters_in_columns() {
    ValueId weight = rewrite_.get(convolution_.convolution.weight);
    const Type wanted = channels_last(type(weight));
    if (!same_layout(type(weight), wanted)) weight = copy(weight, wanted);
    const int64_t filters = wanted.sizes[0].constant() / groups();
    const int64_t row = wanted.numel() / wanted.sizes[0].constant();
    Type columns = wanted;
    columns.sizes = {groups(), row, filters};
    columns.strides = {filters * row, 1, row};
    return view(weight, std::move(columns));
  }

  /// [groups, windows, filters of a group] -> the result
  ValueId as_image(ValueId product) {
    const Dim filters = type(product).sizes[2];
    const Dim windows = type(product).sizes[1];
    Type seen = type(product);
    seen.sizes = {windows, groups(), filters};
    seen.strides = {filters, windows * filters.constant(), 1};
    const ValueId pixels = copy(view(product, seen), contiguous(seen.dtype, seen.sizes, seen.device));
    return view(pixels, result_);
  }

  Rewriter& rewrite_;
  const Node& node_;
  const ImageConvolution& convolution_;
  Type result_;
};

}  // namespace

PassResult grouped_products(Graph& graph, const PassContext& context) {
  if (!context.fast_on_cuda() || context.generic_sizes) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    const auto convolution = grouped_convolution(graph, node);
    return convolution ? std::optional(GroupedProduct(rewrite, node, *convolution).run()) : std::nullopt;
  });
}

}  // namespace sinter::passes
