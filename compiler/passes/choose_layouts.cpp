#include "compiler/passes/choose_layouts.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

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

/// True where channels-last and row-major order really differ: an image of several channels and several pixels.
bool is_image(const Type& type) {
  if (type.rank() != 4 || !type.is_static()) return false;
  const auto sizes = type.static_sizes();
  return sizes[0] > 0 && sizes[1] > 1 && sizes[2] * sizes[3] > 1;
}

Type channels_last(Type type) {
  const auto sizes = type.static_sizes();
  type.strides = {sizes[1] * sizes[2] * sizes[3], 1, sizes[1] * sizes[3], sizes[1]};
  return type;
}

/// Equal addresses for every element: strides of dims of size 1 do not count.
bool same_layout(const Type& a, const Type& b) {
  for (size_t dim = 0; dim < a.rank(); ++dim) {
    if (!(a.sizes[dim] == ir::Dim(1)) && !(a.strides[dim] == b.strides[dim])) return false;
  }
  return true;
}

class LayoutChooser {
 public:
  LayoutChooser(const Graph& old, const PassContext& context) : rewriter_(old), context_(context) {
    for (const ir::NodeId id : old.order()) note_reads(old.node(id));
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
    if (ir::is_computed(node)) {
      if (primitive_follows(node)) {
        relay_results(id);
      } else {
        rewriter_.copy(id);
      }
      return;
    }
    if (generated_depthwise_follows(node)) {
      constexpr std::array images = {convolution_input};
      return lay_out_images(id, images);
    }
    const LayoutFollower* follower = layout_follower(node);
    if (follower != nullptr && follows(node, *follower)) {
      if (follower->keeps) followed_.insert(node.results[*follower->keeps]);
      return lay_out_images(id, follower->images);
    }
    for (const ir::Arg& arg : node.args) ir::for_each_value(arg, [&](ValueId value) { restore(value); });
    rewriter_.copy(id);
  }

  void note_reads(const Node& node) {
    const LayoutFollower* follower = layout_follower(node);
    for (size_t i = 0; i < node.args.size(); ++i) {
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
    return is_image(rewriter_.old().type(value)) && (moved_.contains(value) || laid_out_.contains(value));
  }

  [[nodiscard]] bool follows(const Node& node, const LayoutFollower& follower) const {
    if (follower.kept) {
      const ValueId* kept = node.args.at(*follower.kept).value();
      return kept != nullptr && followed_.contains(*kept);
    }
    if (follower.keeps && read_elsewhere_.contains(node.results.at(*follower.keeps))) return false;
    return at_hand(*node.args[follower.leader].value());
  }

  /// A depthwise convolution whose kernel is generated follows its input.
  [[nodiscard]] bool generated_depthwise_follows(const Node& node) const {
    const auto* call = node.as<Call>();
    if (call == nullptr || !convolution_of(rewriter_.old(), node)) return false;
    const auto windows = window_call(rewriter_.old(), node, context_);
    if (!windows || !at_hand(windows->input)) return false;
    const Type& result = rewriter_.old().type(node.results[0]);
    if (!is_image(result)) return false;
    return window_lanes(*windows, channels_last(rewriter_.old().type(windows->input)), channels_last(result))
        .has_value();
  }

  /// A primitive follows when an operand of its own size was laid out anew, a join when any operand was.
  [[nodiscard]] bool primitive_follows(const Node& node) const {
    const Type& result = rewriter_.old().type(node.results[0]);
    return is_image(result) && std::ranges::any_of(node.args, [&](const ir::Arg& arg) {
             const ValueId* value = arg.value();
             if (value == nullptr || !moved_.contains(*value)) return false;
             return node.as<ir::Join>() != nullptr || rewriter_.old().type(*value).sizes == result.sizes;
           });
  }

  /// Copies a node with the arguments at `images`, and its results, in channels-last order.
  void lay_out_images(ir::NodeId id, std::span<const size_t> images) {
    const Node& node = rewriter_.old().node(id);
    std::vector<ValueId> laid_out;
    for (const size_t position : images) laid_out.push_back(lay_out(*node.args[position].value(), node.scope));
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
      Type& type = rewriter_.next().value(rewriter_.get(result)).type;
      if (type.rank() != 4 || !type.is_static()) continue;
      const Type wanted = channels_last(type);
      if (same_layout(type, wanted)) continue;
      type = wanted;
      moved_.insert(result);
      ++changes_;
    }
    return copy;
  }

  /// The value in channels-last order: itself where it is so already, else a copy.
  ValueId lay_out(ValueId old_value, ir::ScopeId scope) {
    const Type& now = next_type(old_value);
    const Type wanted = now.rank() == 4 && now.is_static() ? channels_last(now) : now;
    if (same_layout(now, wanted)) return rewriter_.get(old_value);
    const auto [place, added] = laid_out_.try_emplace(old_value);
    if (added) {
      place->second = rewriter_.add(ir::Primitive{cast_}, {{rewriter_.get(old_value)}}, wanted, scope);
      ++changes_;
    }
    return place->second;
  }

  /// From here on the value has its captured layout again.
  void restore(ValueId old_value) {
    const auto moved = moved_.find(old_value);
    if (moved == moved_.end()) return;
    const Type& type = rewriter_.old().type(old_value);
    const ir::ScopeId scope = rewriter_.old().producer(old_value).scope;
    const ValueId now = rewriter_.get(old_value);
    laid_out_.emplace(old_value, now);
    rewriter_.set(old_value, rewriter_.add(ir::Primitive{cast_}, {{now}}, type, scope));
    moved_.erase(moved);
  }

  Rewriter rewriter_;
  const PassContext& context_;
  ir::OpId cast_ = ir::op_named("cast");
  std::unordered_set<ValueId> moved_;              ///< old values that now are channels-last
  std::unordered_map<ValueId, ValueId> laid_out_;  ///< channels-last copies of old values
  std::unordered_set<ValueId> followed_;           ///< old values kept by ops that followed, for their backward passes
  std::unordered_set<ValueId> read_elsewhere_;     ///< old values that others than such a backward pass read
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
