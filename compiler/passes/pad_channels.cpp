#include "compiler/passes/pad_channels.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "compiler/ir/op.h"
#include "compiler/passes/aligned_halves.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/layout_rules.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/zero_padding.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Measured on an H100 (cuDNN 9.19, f16 and bf16, 384 channels, 14x14 at batch 1 and 28x28 at batch 16, microseconds):
/// widths 4, 8, 16 and 32 take 5 and 20, 56 and 64 take 13 and 63, 128 takes 13 and 40; others below 56 take 37 and
/// 160, those between 64 and 128 take 13 and 150.
constexpr std::array<int64_t, 4> narrow_widths = {4, 8, 16, 32};
constexpr int64_t wide_width = 128;
/// An image of three channels is padded by cuDNN itself, which takes half as long as the convolution: 300 instead of
/// 207 us for the first layer of ResNet-50 at batch 128, 61 instead of 26 for that of ViT-B/16 at batch 1. Over patches
/// of 4x4 it gains nothing. Four channels and 16 results meet a kernel of cuDNN 9.19 that takes 162 us where three take
/// 15 and eight take 12 (H200, batch 16, 224x224, every second pixel).
constexpr int64_t padded_colours = 4, padded_for_few = 8;
constexpr int64_t few_results = 16;
constexpr int64_t many_taps = 64;
constexpr int64_t slow_below = 56;                   ///< at every size
constexpr int64_t many_elements = int64_t{1} << 20;  ///< of a result, from which on widths up to 128 gain too

/// Channels of a group in the image and in the result.
struct Widths {
  int64_t in = 0, out = 0;
};

/// A convolution and what its groups become.
struct ChannelPadding {
  Convolution convolution;
  size_t groups_at = convolution_groups;  ///< position of the number of groups among the call's args
  int64_t groups = 1;
  Widths width;        ///< of a group
  int64_t packed = 1;  ///< groups in a new one
  Widths wide;         ///< of a new one

  [[nodiscard]] int64_t packs() const { return groups / packed; }
  /// Channels of a new group that are no zeros.
  [[nodiscard]] Widths used() const { return {packed * width.in, packed * width.out}; }
};

bool is_channels_last(const Type& type) {
  return type.rank() == 4 && type.is_static() && same_layout(type, channels_last(type));
}

/// The width that groups should have; nothing where theirs serves as well.
std::optional<int64_t> better_width(int64_t width, int64_t elements) {
  const auto narrow = std::ranges::lower_bound(narrow_widths, width);
  if (narrow != narrow_widths.end()) return *narrow == width ? std::nullopt : std::optional(*narrow);
  if (width < slow_below) return wide_width;
  const bool slow = width > 64 && width < wide_width;
  return slow && elements >= many_elements ? std::optional(wide_width) : std::nullopt;
}

int64_t most_packed(int64_t groups, int64_t width, int64_t wide) {
  int64_t packed = std::min(wide / width, groups);
  while (groups % packed != 0) --packed;
  return packed;
}

bool are_padded_images(const Graph& graph, const Node& node, const Convolution& convolution) {
  const DType dtype = graph.type(convolution.input).dtype;
  return std::ranges::all_of(std::array{convolution.input, convolution.weight, node.results[0]}, [&](ValueId value) {
    const Type& type = graph.type(value);
    return is_half(dtype) && type.dtype == dtype && is_channels_last(type) && type.numel() > 0;
  });
}

/// Windows that overlap, or hold so much that loading them channel by channel is what takes the time.
bool loads_much(const Node& node, const Type& weight) {
  const auto stride = integers_in(node.args[convolution_stride]);
  if (!stride || stride->empty()) return false;
  const int64_t taps = weight.sizes[2].value() * weight.sizes[3].value();
  return taps >= many_taps || stride->front() < weight.sizes[2].value();
}

/// The widths of a convolution over an image of three colours.
std::optional<Widths> widths_of_image(const Node& node, const Type& weight, Widths width) {
  if (!loads_much(node, weight)) return std::nullopt;
  return Widths{width.out <= few_results ? padded_for_few : padded_colours, width.out};
}

/// The next widths that cuDNN's kernels for tensor cores take. Others it pads itself, image and result, in passes of
/// their own: of 26 channels a quarter of Res2Net's time (H100, batch 16). Here the kernels before and after do that.
/// Nothing where these are the widths, or channels of the
/// image are few. A result of very few channels stays: it would grow too much.
std::optional<Widths> aligned_widths(Widths width) {
  const auto aligned = [](int64_t channels) { return channels + missing_halves(channels); };
  const Widths wide{aligned(width.in), width.out < aligned_halves / 2 ? width.out : aligned(width.out)};
  const bool changes = wide.in != width.in || wide.out != width.out;
  return changes && width.in > colours ? std::optional(wide) : std::nullopt;
}

/// cudnn_convolution_relu(image, weight, bias, stride, padding, dilation, groups): up to the dilation as a convolution.
constexpr size_t relu_groups = 6;
constexpr size_t relu_arguments = 7;

/// The padding of an image of three colours whose convolution, of one group, ends with a bias and ReLU.
std::optional<ChannelPadding> padding_before_relu(const Graph& graph, const Node& node) {
  if (call_named(node, "aten::cudnn_convolution_relu", relu_arguments) == nullptr) return std::nullopt;
  const ValueId *image = node.args[convolution_input].value(), *filters = node.args[convolution_weight].value();
  const bool plain = node.args[relu_groups] == Arg{int64_t{1}} &&
                     integers_per_axis(node.args[convolution_dilation], 2) == std::vector<int64_t>{1, 1};
  if (image == nullptr || filters == nullptr || !plain) return std::nullopt;
  const Convolution convolution{*image, *filters, std::nullopt};
  if (!are_padded_images(graph, node, convolution) || graph.type(*filters).sizes[1] != Dim(colours))
    return std::nullopt;
  const Type& weight = graph.type(*filters);
  const Widths width{colours, weight.sizes[0].value()};
  const auto wide = widths_of_image(node, weight, width);
  return wide ? std::optional(ChannelPadding{convolution, relu_groups, 1, width, 1, *wide}) : std::nullopt;
}

std::optional<ChannelPadding> channel_padding_of(const Graph& graph, const Node& node) {
  const auto convolution = convolution_of(graph, node);
  if (!convolution || convolution->bias || convolution->depthwise || !is_undilated_image_call(node))
    return std::nullopt;
  if (!are_padded_images(graph, node, *convolution)) return std::nullopt;
  const Type& weight = graph.type(convolution->weight);
  const int64_t groups = std::get<int64_t>(node.args[convolution_groups].data);
  const Widths width{weight.sizes[1].value(), weight.sizes[0].value() / groups};
  if (groups == 1) {
    const auto wide = width.in == colours ? widths_of_image(node, weight, width) : aligned_widths(width);
    return wide ? std::optional(ChannelPadding{*convolution, convolution_groups, groups, width, 1, *wide})
                : std::nullopt;
  }
  const bool square = width.in == width.out && weight.sizes[2] == Dim(3) && weight.sizes[3] == Dim(3);
  const auto wide = square ? better_width(width.in, graph.type(node.results[0]).numel()) : std::nullopt;
  if (!wide) return std::nullopt;
  const int64_t packed = most_packed(groups, width.in, *wide);
  return 2 * packed * width.in < *wide
             ? std::nullopt
             : std::optional(ChannelPadding{*convolution, convolution_groups, groups, width, packed, {*wide, *wide}});
}

/// Builds what stands for one convolution.
class ChannelPadder {
 public:
  ChannelPadder(Rewriter& rewrite, const Node& node, const ChannelPadding& padding)
      : rewrite_(rewrite), node_(node), padding_(padding) {}

  ValueId run() {
    std::vector<Arg> args = rewrite_.map_args(node_.args);
    args[convolution_input] = {image()};
    args[convolution_weight] = {weight()};
    args[padding_.groups_at] = {padding_.packs()};
    const Type& result = rewrite_.old().type(node_.results[0]);
    const ValueId made =
        add(*node_.as<Call>(), std::move(args), with_channels(result, padding_.packs() * padding_.wide.out));
    const int64_t used = padding_.used().out;
    if (used == padding_.wide.out) return made;
    Type part = by_pack(type(made), padding_.wide.out);
    part.sizes[2] = used;
    const ValueId seen = add(View{0}, {{made}}, std::move(part));
    const ValueId cut = add(Primitive{op_named("cast")}, {{seen}}, by_pack(result, used));
    return add(View{0}, {{cut}}, result);
  }

 private:
  ValueId add(Payload payload, std::vector<Arg> args, Type type) {
    return rewrite_.add(std::move(payload), std::move(args), std::move(type), node_.scope);
  }

  [[nodiscard]] const Type& type(ValueId value) const { return rewrite_.next().type(value); }

  /// The same image with as many channels, dense.
  static Type with_channels(const Type& image, int64_t channels) {
    std::vector<Dim> sizes = image.sizes;
    sizes[1] = channels;
    return dense_like(image, std::move(sizes));
  }

  /// An image whose channels are two dims, groups and the channels of each.
  static Type by_pack(Type image, int64_t width) {
    const int64_t channels = image.sizes[1].value();
    image.sizes[1] = width;
    image.sizes.insert(image.sizes.begin() + 1, channels / width);
    image.strides.insert(image.strides.begin() + 1, width);
    return image;
  }

  ValueId padded(ValueId value, uint32_t dim, int64_t before, int64_t after) {
    return among_zeros(rewrite_, value, dim, before, after, node_.scope);
  }

  ValueId image() {
    const ValueId image = rewrite_.get(padding_.convolution.input);
    const int64_t used = padding_.used().in;
    if (used == padding_.wide.in) return image;
    const ValueId seen = add(View{0}, {{image}}, by_pack(type(image), used));
    const ValueId wide = padded(seen, 2, 0, padding_.wide.in - used);
    return add(View{0}, {{wide}}, with_channels(type(image), padding_.packs() * padding_.wide.in));
  }

  /// [groups * out, in, ...] -> [packs * wide out, wide in, ...], zero where channels of different groups meet.
  ValueId weight() {
    const ValueId weight = rewrite_.get(padding_.convolution.weight);
    const Type from = type(weight);
    std::vector<Arg> blocks;
    for (int64_t i = 0; i < padding_.packed; ++i) {
      const ValueId seen =
          add(View{i * padding_.width.out * from.strides[0].value()}, {{weight}}, filters_of_one_group(from));
      const int64_t before = i * padding_.width.in;
      blocks.push_back({padded(seen, 2, before, padding_.wide.in - before - padding_.width.in)});
    }
    const ValueId whole = padded(side_by_side(rewrite_, std::move(blocks), 1, node_.scope), 1, 0,
                                 padding_.wide.out - padding_.used().out);
    return add(
        View{0}, {{whole}},
        dense_like(from, {padding_.packs() * padding_.wide.out, padding_.wide.in, from.sizes[2], from.sizes[3]}));
  }

  /// Of every new group: [packs, out, in, ...].
  [[nodiscard]] Type filters_of_one_group(Type weight) const {
    const Dim pack = weight.strides[0] * padding_.used().out;
    weight.sizes[0] = padding_.width.out;
    weight.sizes.insert(weight.sizes.begin(), padding_.packs());
    weight.strides.insert(weight.strides.begin(), pack);
    return weight;
  }

  Rewriter& rewrite_;
  const Node& node_;
  const ChannelPadding& padding_;
};

}  // namespace

PassResult pad_channels(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || context.generic_sizes) return {};
  return rewrite_first_results(graph, [&](Rewriter& rewrite, const Node& node) -> std::optional<ValueId> {
    auto padding = channel_padding_of(graph, node);
    if (!padding) padding = padding_before_relu(graph, node);
    return padding ? std::optional(ChannelPadder(rewrite, node, *padding).run()) : std::nullopt;
  });
}

}  // namespace sinter::passes
