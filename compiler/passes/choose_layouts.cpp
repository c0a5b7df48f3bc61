#include "compiler/passes/choose_layouts.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/placed_view.h"
#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/layout_rules.h"
#include "compiler/passes/rewriter.h"
#include "compiler/passes/window_call.h"

namespace sinter::passes {
namespace {

using ir::Call;
using ir::Graph;
using ir::Node;
using ir::Type;
using ir::ValueId;

/// True where channels-last and row-major order really differ: an image or volume of several channels and several
/// pixels.
bool is_image(const Type& type) {
  if (!has_pixels(type)) return false;
  const auto sizes = type.static_sizes();
  const bool several = std::any_of(sizes.begin() + 2, sizes.end(), [](int64_t size) { return size > 1; });
  return several && type.numel() > 0 && sizes[1] > 1;
}

class LayoutChooser {
 public:
  LayoutChooser(const Graph& old, const PassContext& context) : rewriter_(old), context_(context) {
    for (const ir::NodeId id : old.order()) note_reads(id);
    read_elsewhere_.insert(old.outputs.begin(), old.outputs.end());
  }

  Graph run() {
    for (const ir::NodeId id : rewriter_.old().order()) visit(id);
    for (const ValueId output : rewriter_.old().outputs) restore(output);
    return rewriter_.finish();
  }

  [[nodiscard]] int64_t changes() const { return changes_; }

 private:
  void visit(ir::NodeId id) {
    const Node& node = rewriter_.old().node(id);
    if (const auto images = wants_channels_last(node)) return lay_out_images(id, images->arguments);
    if (ir::is_computed(node)) return visit_computed(id);
    if (node.as<ir::View>() && view_follows(node)) return;
    if (generated_depthwise_follows(node)) {
      constexpr std::array images = {convolution_input};
      return lay_out_images(id, images, /*copies_slices=*/false);
    }
    const LayoutFollower* follower = layout_follower(node);
    if (follower != nullptr && follows(node, *follower)) {
      if (follower->keeps) followed_.insert(node.results[*follower->keeps]);
      return lay_out_images(id, follower->images);
    }
    if (concatenation_follows(node)) return lay_out_parts(id);
    for (const ir::Arg& arg : node.args) ir::for_each_value(arg, [&](ValueId value) { restore(value); });
    rewriter_.copy(id);
  }

  void visit_computed(ir::NodeId id) {
    const Node& node = rewriter_.old().node(id);
    const bool follows = primitive_follows(node);
    const ValueId* operand = follows ? nullptr : followed_operand(node);
    const ir::NodeId copy = follows ? relay_results(id) : rewriter_.copy(id);
    if (operand != nullptr) {
      const Type& now = rewriter_.next().type(as_computed(*operand));
      relay(node.results[0], ir::dense_like(now, next_type(node.results[0]).sizes));
    }
    auto& args = rewriter_.next().node(copy).args;
    for (size_t i = 0; i < args.size(); ++i) {
      const ValueId* value = node.args[i].value();
      if (value != nullptr) args[i].data = as_computed(*value);
    }
  }

  /// What stands for the value, in its new layout even where it was restored for others.
  [[nodiscard]] ValueId as_computed(ValueId old_value) const {
    const auto restored = restored_.find(old_value);
    return restored == restored_.end() ? rewriter_.get(old_value) : restored->second;
  }

  /// A view of a value that was laid out anew sees the same elements there.
  bool view_follows(const Node& node) {
    const ValueId base = *node.args[0].value();
    if (!was_moved(base)) return false;
    const ValueId now = as_computed(base);
    const ValueId result = node.results[0];
    const ir::PlacedView captured{rewriter_.old().type(result), node.as<ir::View>()->offset};
    const auto look = ir::seen_in(rewriter_.old().type(base), rewriter_.next().type(now), captured);
    if (!look) return false;
    rewriter_.set(result, rewriter_.add(ir::View{look->offset}, {{now}}, look->type, node.scope));
    views_.insert(result);
    return true;
  }

  /// The operand that a primitive of its sizes and layout, or a reduction of it, follows: one that was laid out anew,
  /// or a view of one. Else a sum of tokens that were an image would lie as the image did, and rows of it be far apart.
  [[nodiscard]] const ValueId* followed_operand(const Node& node) const {
    const Type& result = rewriter_.old().type(node.results[0]);
    for (const ir::Arg& arg : node.args) {
      const ValueId* value = arg.value();
      if (value == nullptr || (!views_.contains(*value) && !was_moved(*value))) continue;
      const Type& seen = rewriter_.old().type(*value);
      if (!seen.is_dense()) continue;
      if (node.as<ir::Reduce>() != nullptr ? is_joined_like(result, seen)
                                           : seen.sizes == result.sizes && ir::same_layout(seen, result)) {
        return value;
      }
    }
    return nullptr;
  }

  /// True where what is left of an operand's dims lies in their order.
  static bool is_joined_like(const Type& result, const Type& operand) {
    return result.is_static() && operand.is_static() && ir::same_layout(result, ir::dense_like(operand, result.sizes));
  }

  /// Gives the result of a node that was copied the strides of another type of its sizes.
  void relay(ValueId result, const Type& wanted) {
    Type& type = rewriter_.next().value(rewriter_.get(result)).type;
    if (ir::same_layout(type, wanted)) return;
    type.strides = wanted.strides;
    moved_.insert(result);
    ++changes_;
  }

  void note_reads(ir::NodeId id) {
    const Node& node = rewriter_.old().node(id);
    const LayoutFollower* follower = layout_follower(node);
    for (size_t i = 0; i < node.args.size(); ++i) {
      ir::for_each_value(node.args[i], [&](ValueId value) { readers_[value].push_back(id); });
      if (follower != nullptr && follower->kept == i) continue;
      ir::for_each_value(node.args[i], [&](ValueId value) { read_elsewhere_.insert(value); });
    }
  }

  [[nodiscard]] std::optional<ConvolutionImages> wants_channels_last(const Node& node) const {
    const auto images = convolution_images(rewriter_.old(), node);
    if (!images) return std::nullopt;
    const Type& type = rewriter_.old().type(images->input);
    const DeviceInfo& device = context_.device;
    const bool dtype = ir::is_half(type.dtype) ? device.channels_last_half
                                               : type.dtype == ir::DType::f32 && device.channels_last_float;
    if (!dtype || !is_image(type) || !is_image(rewriter_.old().type(images->output))) return std::nullopt;
    return images;
  }

  [[nodiscard]] const Type& next_type(ValueId old_value) const {
    return rewriter_.next().type(rewriter_.get(old_value));
  }

  /// True where the value, as it was captured in another layout, is at hand in channels-last order.
  [[nodiscard]] bool at_hand(ValueId value) const {
    return is_image(rewriter_.old().type(value)) && (laid_out_.contains(value) || lies_channels_last(value));
  }

  /// True for a view of some channels of an image that is channels-last now.
  [[nodiscard]] bool sees_channels(ValueId value) const {
    return views_.contains(value) && is_image(rewriter_.old().type(value)) && next_type(value).strides[1] == ir::Dim(1);
  }

  [[nodiscard]] bool lies_channels_last(ValueId value) const { return is_moved_image(value) || sees_channels(value); }

  [[nodiscard]] bool follows(const Node& node, const LayoutFollower& follower) const {
    if (follower.kept) {
      const ValueId* kept = node.args.at(*follower.kept).value();
      return kept != nullptr && followed_.contains(*kept);
    }
    if (follower.keeps && read_elsewhere_.contains(node.results.at(*follower.keeps))) return false;
    return at_hand(*node.args[follower.leader].value());
  }

  /// LibTorch's call lays its result out as all that it is given lies: it follows as a join does.
  [[nodiscard]] bool concatenation_follows(const Node& node) const {
    if (call_named(node, "aten::cat", 2) == nullptr || node.args[0].list() == nullptr) return false;
    const auto& parts = *node.args[0].list();
    const auto is_part = [&](const ir::Arg& part) {
      return part.value() != nullptr && is_image(rewriter_.old().type(*part.value()));
    };
    return is_image(rewriter_.old().type(node.results[0])) && std::ranges::all_of(parts, is_part) &&
           std::ranges::any_of(parts, [&](const ir::Arg& part) { return lies_channels_last(*part.value()); });
  }

  void lay_out_parts(ir::NodeId id) {
    const Node& node = rewriter_.old().node(id);
    ir::ArgList parts;
    for (const ir::Arg& part : *node.args[0].list()) parts.push_back({lay_out(*part.value(), node.scope)});
    const ir::NodeId copy = relay_results(id);
    rewriter_.next().node(copy).args[0].data = std::move(parts);
  }

  /// A depthwise convolution whose kernel is generated follows its input, and reads some channels of an image where
  /// they are.
  [[nodiscard]] bool generated_depthwise_follows(const Node& node) const {
    const auto* call = node.as<Call>();
    if (call == nullptr || !convolution_of(rewriter_.old(), node)) return false;
    const auto windows = window_call(rewriter_.old(), node, context_);
    if (!windows || !at_hand(windows->input)) return false;
    return can_follow(*windows, node,
                      sees_channels(windows->input) ? next_type(windows->input)
                                                    : channels_last(rewriter_.old().type(windows->input)));
  }

  /// True where a kernel for the windows of a call gives a channels-last image, given its input.
  [[nodiscard]] bool can_follow(const WindowCall& windows, const Node& node, const Type& input) const {
    const Type& result = rewriter_.old().type(node.results[0]);
    return is_image(result) && window_lanes(windows, input, channels_last(result)).has_value();
  }

  /// A primitive follows when an operand of its own size was laid out anew, a join when any operand was; and where
  /// generated windows alone read it, when the channels of an operand lie side by side as they were captured.
  [[nodiscard]] bool primitive_follows(const Node& node) const {
    const ValueId result = node.results[0];
    const Type& type = rewriter_.old().type(result);
    if (!is_image(type)) return false;
    const bool joins = node.as<ir::Join>() != nullptr;
    const auto any_operand = [&](auto&& lies) {
      return std::ranges::any_of(node.args, [&](const ir::Arg& arg) {
        const ValueId* value = arg.value();
        return value != nullptr && (joins || rewriter_.old().type(*value).sizes == type.sizes) && lies(*value);
      });
    };
    if (any_operand([&](ValueId value) { return lies_channels_last(value); })) return true;
    const auto side_by_side = [&](ValueId value) { return next_type(value).strides[1] == ir::Dim(1); };
    return !joins && any_operand(side_by_side) && only_windows_read(result);
  }

  /// True where all that reads an image are calls of windows whose kernels are generated and can follow it.
  [[nodiscard]] bool only_windows_read(ValueId image) const {
    const auto readers = readers_.find(image);
    if (readers == readers_.end() || std::ranges::count(rewriter_.old().outputs, image) != 0) return false;
    const Type input = channels_last(rewriter_.old().type(image));
    return std::ranges::all_of(readers->second, [&](ir::NodeId id) {
      const Node& reader = rewriter_.old().node(id);
      const auto windows = window_call(rewriter_.old(), reader, context_);
      return windows && windows->input == image && can_follow(*windows, reader, input);
    });
  }

  /// Copies a node with the arguments at `images`, and its results, in channels-last order. Without `copies_slices` it
  /// reads some channels of an image where they are.
  void lay_out_images(ir::NodeId id, std::span<const size_t> images, bool copies_slices = true) {
    const Node& node = rewriter_.old().node(id);
    std::vector<ValueId> laid_out;
    for (const size_t position : images) {
      const ValueId image = *node.args[position].value();
      const bool as_it_is = !copies_slices && sees_channels(image);
      laid_out.push_back(as_it_is ? rewriter_.get(image) : lay_out(image, node.scope));
    }
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (std::ranges::find(images, i) != images.end()) continue;
      ir::for_each_value(node.args[i], [&](ValueId value) { restore(value); });
    }
    const ir::NodeId copy = relay_results(id);
    for (size_t i = 0; i < images.size(); ++i) rewriter_.next().node(copy).args[images[i]].data = laid_out[i];
  }

  /// Copies a node; its images become channels-last.
  ir::NodeId relay_results(ir::NodeId id) {
    const ir::NodeId copy = rewriter_.copy(id);
    for (const ValueId result : rewriter_.old().node(id).results) {
      const Type& type = next_type(result);
      if (has_pixels(type)) relay(result, channels_last(type));
    }
    return copy;
  }

  /// The value in channels-last order: itself where it is so already, else a copy.
  ValueId lay_out(ValueId old_value, ir::ScopeId scope) {
    const Type& now = next_type(old_value);
    const Type wanted = has_pixels(now) ? channels_last(now) : now;
    if (ir::same_layout(now, wanted)) return rewriter_.get(old_value);
    const auto [place, added] = laid_out_.try_emplace(old_value);
    if (added) {
      place->second = rewriter_.add(ir::Primitive{cast_}, {{rewriter_.get(old_value)}}, wanted, scope);
      ++changes_;
    }
    return place->second;
  }

  [[nodiscard]] bool was_moved(ValueId old_value) const {
    return moved_.contains(old_value) || restored_.contains(old_value);
  }

  /// True for an image that was computed in channels-last order.
  [[nodiscard]] bool is_moved_image(ValueId old_value) const {
    if (!was_moved(old_value) || !is_image(rewriter_.old().type(old_value))) return false;
    const Type& type = rewriter_.next().type(as_computed(old_value));
    return ir::same_layout(type, channels_last(type));
  }

  /// From here on a view sees its value in the captured layout.
  void restore_view(ValueId old_value) {
    const Node& view = rewriter_.old().producer(old_value);
    const ValueId base = *view.args[0].value();
    restore(base);
    const Type& type = rewriter_.old().type(old_value);
    rewriter_.set(old_value, rewriter_.add(*view.as<ir::View>(), {{rewriter_.get(base)}}, type, view.scope));
    views_.erase(old_value);
  }

  /// From here on the value has its captured layout again.
  void restore(ValueId old_value) {
    if (views_.contains(old_value)) return restore_view(old_value);
    const auto moved = moved_.find(old_value);
    if (moved == moved_.end()) return;
    const Type& type = rewriter_.old().type(old_value);
    const ir::ScopeId scope = rewriter_.old().producer(old_value).scope;
    const ValueId now = rewriter_.get(old_value);
    if (is_moved_image(old_value)) laid_out_.emplace(old_value, now);
    rewriter_.set(old_value, rewriter_.add(ir::Primitive{cast_}, {{now}}, type, scope));
    moved_.erase(moved);
    restored_.emplace(old_value, now);
  }

  Rewriter rewriter_;
  const PassContext& context_;
  ir::OpId cast_ = ir::op_named("cast");
  std::unordered_set<ValueId> moved_;              ///< old values that now have another layout
  std::unordered_map<ValueId, ValueId> restored_;  ///< those that have the captured one again, as they were computed
  std::unordered_set<ValueId> views_;              ///< old views that see values in another layout
  std::unordered_map<ValueId, ValueId> laid_out_;  ///< channels-last copies of old values
  std::unordered_set<ValueId> followed_;           ///< old values kept by ops that followed, for their backward passes
  std::unordered_set<ValueId> read_elsewhere_;     ///< old values that others than such a backward pass read
  std::unordered_map<ValueId, std::vector<ir::NodeId>> readers_;  ///< of old values; graph outputs are none
  int64_t changes_ = 0;
};

}  // namespace

PassResult choose_layouts(Graph& graph, const PassContext& context) {
  if (!context.device.channels_last_half && !context.device.channels_last_float) return {};
  LayoutChooser chooser(graph, context);
  graph = chooser.run();
  return {chooser.changes()};
}

}  // namespace sinter::passes
