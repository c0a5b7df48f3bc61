#include "compiler/passes/choose_layouts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "compiler/passes/aten.h"
#include "compiler/passes/convolution.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using ir::Call;
using ir::Graph;
using ir::Node;
using ir::Type;
using ir::ValueId;

/// Library ops whose results have the layout of their first argument.
constexpr std::array<std::string_view, 3> following = {"aten::max_pool2d_with_indices", "aten::avg_pool2d",
                                                       "aten::_adaptive_avg_pool2d"};

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
  LayoutChooser(const Graph& old, const DeviceInfo& device) : rewriter_(old), device_(device) {}

  Graph run() {
    for (const ir::NodeId id : rewriter_.old().order()) visit(id);
    for (const ValueId output : rewriter_.old().outputs) restore(output);
    return rewriter_.finish();
  }

  [[nodiscard]] int64_t changes() const { return changes_; }

 private:
  void visit(ir::NodeId id) {
    const Node& node = rewriter_.old().node(id);
    const auto* call = node.as<Call>();
    if (wants_channels_last(node)) return convolution(id);
    const bool primitive = node.as<ir::Primitive>() != nullptr;
    if (primitive ? primitive_follows(node) : call != nullptr && follows(node, *call)) {
      relay_results(id);
      return;
    }
    if (!primitive) {
      for (const ir::Arg& arg : node.args) ir::for_each_value(arg, [&](ValueId value) { restore(value); });
    }
    rewriter_.copy(id);
  }

  [[nodiscard]] bool wants_channels_last(const Node& node) const {
    const auto convolution = convolution_of(rewriter_.old(), node);
    if (!convolution || convolution->depthwise) return false;
    const Type& type = rewriter_.old().type(convolution->input);
    const bool dtype = ir::is_half(type.dtype) ? device_.channels_last_half
                                               : type.dtype == ir::DType::f32 && device_.channels_last_float;
    return dtype && is_image(type) && is_image(rewriter_.old().type(node.results[0]));
  }

  [[nodiscard]] const Type& next_type(ValueId old_value) const {
    return rewriter_.next().type(rewriter_.get(old_value));
  }

  [[nodiscard]] bool relaid(ValueId value) const {
    const Type& now = next_type(value);
    return is_image(now) && same_layout(now, channels_last(now));
  }

  [[nodiscard]] bool follows(const Node& node, const Call& call) const {
    if (std::ranges::find(following, base_name(call.op)) == following.end()) return false;
    const ValueId* input = node.args.empty() ? nullptr : node.args[0].value();
    return input != nullptr && relaid(*input) && moved_.contains(*input);
  }

  /// A primitive follows when an operand of its own size was laid out anew.
  [[nodiscard]] bool primitive_follows(const Node& node) const {
    const Type& result = rewriter_.old().type(node.results[0]);
    return is_image(result) && std::ranges::any_of(node.args, [&](const ir::Arg& arg) {
             const ValueId* value = arg.value();
             return value != nullptr && moved_.contains(*value) && rewriter_.old().type(*value).sizes == result.sizes;
           });
  }

  void convolution(ir::NodeId id) {
    const Node& node = rewriter_.old().node(id);
    const auto input = lay_out(*node.args[convolution_input].value(), node.scope);
    const auto weight = lay_out(*node.args[convolution_weight].value(), node.scope);
    if (const ValueId* bias = node.args[convolution_bias].value()) restore(*bias);
    const ir::NodeId copy = relay_results(id);
    rewriter_.next().node(copy).args[convolution_input].data = input;
    rewriter_.next().node(copy).args[convolution_weight].data = weight;
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
  const DeviceInfo& device_;
  ir::OpId cast_ = ir::op_named("cast");
  std::unordered_set<ValueId> moved_;              ///< old values that now are channels-last
  std::unordered_map<ValueId, ValueId> laid_out_;  ///< channels-last copies of old values
  int64_t changes_ = 0;
};

}  // namespace

PassResult choose_layouts(Graph& graph, const PassContext& context) {
  if (!context.device.channels_last_half && !context.device.channels_last_float) return {};
  LayoutChooser chooser(graph, context.device);
  graph = chooser.run();
  return {chooser.changes()};
}

}  // namespace sinter::passes
