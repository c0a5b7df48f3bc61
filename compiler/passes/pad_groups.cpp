#include "compiler/passes/pad_groups.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "compiler/ir/op.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Measured on an H100 (cuDNN 9.19, f16 and bf16, 384 channels, 14x14 at batch 1 and 28x28 at batch 16, microseconds):
/// widths 4, 8, 16 and 32 take 5 and 20, 56 and 64 take 13 and 63, 128 takes 13 and 40; others below 56 take 37 and
/// 160, those between 64 and 128 take 13 and 150.
constexpr std::array<int64_t, 4> narrow_widths = {4, 8, 16, 32};
constexpr int64_t wide_width = 128;
constexpr int64_t slow_below = 56;                   ///< at every size
constexpr int64_t many_elements = int64_t{1} << 20;  ///< of a result, from which on widths up to 128 gain too

/// A grouped convolution and what its groups become.
struct GroupPadding {
  Convolution convolution;
  int64_t groups = 0, width = 0;  ///< channels of a group, in and out
  int64_t packed = 1;             ///< groups in a new one
  int64_t wide = 0;               ///< channels of a new one

  [[nodiscard]] int64_t packs() const { return groups / packed; }
  [[nodiscard]] int64_t used() const { return packed * width; }  ///< channels of a new group that are no zeros
};

bool is_channels_last(const Type& type) {
  if (type.rank() != 4 || !type.is_static()) return false;
  const int64_t channels = type.sizes[1].value();
  const int64_t row = channels * type.sizes[3].value();
  return same_layout(type, {type.dtype, type.sizes, {row * type.sizes[2].value(), 1, row, channels}, type.device});
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

bool is_undilated(const Node& node) {
  const auto dilation = integers_in(node.args[convolution_dilation]);
  const auto* transposed = std::get_if<bool>(&node.args[convolution_transposed].data);
  return dilation && std::ranges::all_of(*dilation, [](int64_t step) { return step == 1; }) && transposed != nullptr &&
         !*transposed;
}

std::optional<GroupPadding> group_padding_of(const Graph& graph, const Node& node) {
  const auto convolution = convolution_of(graph, node);
  if (!convolution || convolution->bias || convolution->depthwise || !is_undilated(node)) return std::nullopt;
  const Type& image = graph.type(convolution->input);
  const Type& weight = graph.type(convolution->weight);
  const Type& result = graph.type(node.results[0]);
  for (const Type* type : {&image, &weight, &result}) {
    if (!is_half(type->dtype) || type->dtype != image.dtype) return std::nullopt;
    if (!is_channels_last(*type) || type->numel() == 0) return std::nullopt;
  }
  if (weight.sizes[2] != Dim(3) || weight.sizes[3] != Dim(3)) return std::nullopt;
  GroupPadding padding{*convolution, std::get<int64_t>(node.args[convolution_groups].data), weight.sizes[1].value()};
  if (padding.groups < 2 || weight.sizes[0] != Dim(padding.groups * padding.width)) return std::nullopt;
  const auto wide = better_width(padding.width, result.numel());
  if (!wide) return std::nullopt;
  padding.wide = *wide;
  padding.packed = most_packed(padding.groups, padding.width, *wide);
  return 2 * padding.used() < padding.wide ? std::nullopt : std::optional(padding);
}

/// Builds what stands for one convolution.
class GroupPadder {
 public:
  GroupPadder(Rewriter& rewrite, const Node& node, const GroupPadding& padding)
      : rewrite_(rewrite), node_(node), padding_(padding) {}

  ValueId run() {
    std::vector<Arg> args = rewrite_.map_args(node_.args);
    args[convolution_input] = {image()};
    args[convolution_weight] = {weight()};
    args[convolution_groups] = {padding_.packs()};
    const Type& result = rewrite_.old().type(node_.results[0]);
    const ValueId made =
        add(*node_.as<Call>(), std::move(args), with_channels(result, padding_.packs() * padding_.wide));
    if (padding_.used() == padding_.wide) return made;
    Type part = by_pack(type(made), padding_.wide);
    part.sizes[2] = padding_.used();
    const ValueId seen = add(View{0}, {{made}}, std::move(part));
    const ValueId cut = add(Primitive{op_named("cast")}, {{seen}}, by_pack(result, padding_.used()));
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

  /// The value between zeros along a dim.
  ValueId padded(ValueId value, uint32_t dim, int64_t before, int64_t after) {
    std::vector<Arg> parts{{value}};
    if (before > 0) parts.insert(parts.begin(), {zeros(value, dim, before)});
    if (after > 0) parts.push_back({zeros(value, dim, after)});
    return join(std::move(parts), dim);
  }

  ValueId zeros(ValueId like, uint32_t dim, int64_t count) {
    std::vector<Dim> sizes = type(like).sizes;
    sizes[dim] = count;
    return add(Primitive{op_named("cast")}, {{0.0}}, dense_like(type(like), std::move(sizes)));
  }

  ValueId join(std::vector<Arg> parts, uint32_t dim) {
    if (parts.size() == 1) return *parts.front().value();
    const Type& first = type(*parts.front().value());
    std::vector<Dim> sizes = first.sizes;
    for (size_t i = 1; i < parts.size(); ++i) sizes[dim] = sizes[dim] + type(*parts[i].value()).sizes[dim];
    Type joined = dense_like(first, std::move(sizes));
    return add(Join{dim}, std::move(parts), std::move(joined));
  }

  ValueId image() {
    const ValueId image = rewrite_.get(padding_.convolution.input);
    if (padding_.used() == padding_.wide) return image;
    const ValueId seen = add(View{0}, {{image}}, by_pack(type(image), padding_.used()));
    const ValueId wide = padded(seen, 2, 0, padding_.wide - padding_.used());
    return add(View{0}, {{wide}}, with_channels(type(image), padding_.packs() * padding_.wide));
  }

  /// [groups * width, width, 3, 3] -> [packs * wide, wide, 3, 3], zero where channels of different groups meet.
  ValueId weight() {
    const ValueId weight = rewrite_.get(padding_.convolution.weight);
    std::vector<Arg> blocks;
    for (int64_t i = 0; i < padding_.packed; ++i) {
      const ValueId seen = add(View{i * padding_.width * type(weight).strides[0].value()}, {{weight}}, filters(weight));
      const int64_t before = i * padding_.width;
      blocks.push_back({padded(seen, 2, before, padding_.wide - before - padding_.width)});
    }
    const ValueId whole = padded(join(std::move(blocks), 1), 1, 0, padding_.wide - padding_.used());
    const Type& from = type(weight);
    const std::vector<Dim> sizes{padding_.packs() * padding_.wide, padding_.wide, from.sizes[2], from.sizes[3]};
    return add(View{0}, {{whole}}, dense_like(from, sizes));
  }

  /// One group's filters of every new group: [packs, width, width, 3, 3].
  [[nodiscard]] Type filters(ValueId weight) const {
    Type seen = type(weight);
    seen.sizes[0] = padding_.width;
    seen.sizes.insert(seen.sizes.begin(), padding_.packs());
    seen.strides.insert(seen.strides.begin(), seen.strides[0] * padding_.used());
    return seen;
  }

  Rewriter& rewrite_;
  const Node& node_;
  const GroupPadding& padding_;
};

}  // namespace

PassResult pad_groups(Graph& graph, const PassContext& context) {
  if (context.device.backend != Backend::cuda || context.generic_sizes) return {};
  PassResult result;
  Rewriter rewrite(graph);
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const auto padding = group_padding_of(graph, node);
    if (!padding) {
      rewrite.copy(id);
      continue;
    }
    rewrite.set(node.results[0], GroupPadder(rewrite, node, *padding).run());
    ++result.changes;
  }
  if (result.changes == 0) return result;
  Graph next = rewrite.finish();
  graph = std::move(next);
  return result;
}

}  // namespace sinter::passes
