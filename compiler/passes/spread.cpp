#include "compiler/passes/spread.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/kernel/region.h"
#include "compiler/passes/frozen.h"
#include "compiler/passes/rewriter.h"

namespace sinter::passes {
namespace {

using namespace ir;

/// Nodes copied for one user, at most.
constexpr size_t most_copies = 16;
/// More elements than any value has.
constexpr int64_t all_points = int64_t{1} << 60;

class Spreader {
 public:
  Spreader(const Graph& old, bool freeze)
      : old_(old),
        rewrite_(old),
        frozen_(frozen_nodes(old, freeze)),
        users_(old.value_count(), 0),
        points_(old.value_count(), 0) {
    for (NodeId id : old_.order()) {
      const Node& node = old_.node(id);
      if (node.as<View>()) continue;
      for (const Arg& arg : node.args) {
        for_each_value(arg, [&](ValueId value) { note_use(value, points_read(node, value)); });
      }
    }
    for (ValueId output : old_.outputs) note_use(output, all_points);
  }

  Graph run() {
    for (NodeId id : old_.order()) {
      const bool joins = old_.node(id).as<Join>() != nullptr;
      if (!joins && !old_.node(id).as<Primitive>()) {
        rewrite_.copy(id);
        continue;
      }
      copies_.clear();
      is_for_frozen_ = frozen_[id.index];
      Node node = old_.node(id);
      const int64_t points = joins ? 0 : old_.type(node.results[0]).numel();  // a join repeats nothing
      const ValueId made = rewrite_.add(node.payload, own_args(node.args, points, Copying::nothing),
                                        old_.type(node.results[0]), node.scope);
      rewrite_.set(node.results[0], made);
    }
    return rewrite_.finish();
  }

 private:
  void note_use(ValueId value, int64_t points) {
    const ValueId base = view_source(old_, value).base;
    ++users_[base.index];
    points_[base.index] = std::min(all_points, points_[base.index] + points);
  }

  /// Elements of a value that a node asks for; `all_points` of a node that makes no copies.
  [[nodiscard]] int64_t points_read(const Node& node, ValueId value) const {
    if (node.as<Primitive>() != nullptr) return old_.type(node.results[0]).numel();
    return node.as<Join>() != nullptr ? old_.type(value).numel() : all_points;
  }

  /// What the node whose operands are asked for is.
  enum class Copying : uint8_t {
    nothing,  ///< no copy
    cheap,    ///< a copy of a cheap value
    part,     ///< a copy that computes one user's part of a value
  };

  std::vector<Arg> own_args(const std::vector<Arg>& args, int64_t points, Copying copying) {
    std::vector<Arg> mapped = args;
    for (Arg& arg : mapped) {
      if (arg.value() != nullptr) arg.data = own(*arg.value(), points, copying);
    }
    return mapped;
  }

  /// The value for one user with this many elements: a copy made for it where that is cheap and others use it too
  /// (operands of copies always have others).
  ValueId own(ValueId value, int64_t points, Copying copying) {
    if (const auto made = copies_.find(value); made != copies_.end()) return made->second;
    const ValueId base = kernel::region_operand(old_, value).base;
    const Node& producer = old_.producer(base);
    const bool alone = users_[base.index] < 2;
    if (is_kept(base)) return rewrite_.get(value);
    const bool may_be_copied = producer.as<Primitive>() != nullptr || producer.as<Position>() != nullptr;
    if ((alone && copying == Copying::nothing) || !may_be_copied || copies_.size() >= most_copies) {
      return rewrite_.get(value);
    }
    const bool part = alone ? copying == Copying::part : is_shared_out(base);
    if (!part && !is_cheap(producer, points)) return rewrite_.get(value);
    const Node& node = old_.producer(value);
    std::vector<Arg> args = own_args(node.args, points, part ? Copying::part : Copying::cheap);
    const ValueId made = rewrite_.add(node.payload, std::move(args), old_.type(value), node.scope);
    copies_[value] = made;
    return made;
  }

  /// True for a value that is computed once, and whose user is not: they are never one kernel. Constants may be.
  [[nodiscard]] bool is_kept(ValueId base) const {
    const Node& node = old_.producer(base);
    const bool is_constant = std::ranges::none_of(node.args, [](const Arg& arg) { return arg.value() != nullptr; });
    return frozen_[old_.value(base).producer.index] && !is_for_frozen_ && !is_constant;
  }

  /// True where the users ask for no more elements than there are: each computes its own part, as the one kernel did.
  [[nodiscard]] bool is_shared_out(ValueId base) const { return points_[base.index] <= old_.type(base).numel(); }

  [[nodiscard]] bool is_cheap(const Node& node, int64_t points) const {
    const Type& type = old_.type(node.results[0]);
    if (type.numel() * broadcast_factor <= points) return true;
    const ValueId* only = nullptr;
    for (const Arg& arg : node.args) {
      if (arg.value() == nullptr) continue;
      if (only != nullptr) return false;
      only = arg.value();
    }
    if (only == nullptr) return true;  // a constant
    if (row(node.as<Primitive>()->op).name != "cast") return false;
    const DType from = old_.type(*only).dtype;
    return from != type.dtype && bytes_of(from) <= bytes_of(type.dtype);
  }

  const Graph& old_;
  Rewriter rewrite_;
  std::vector<bool> frozen_;     ///< by node
  bool is_for_frozen_ = false;   ///< the node whose operands are asked for
  std::vector<uint32_t> users_;  ///< by value: uses, views looked through
  std::vector<int64_t> points_;  ///< by value: elements that they ask for together
  std::unordered_map<ValueId, ValueId> copies_;
};

/// Drops primitives and views that nothing uses any more.
void drop_unused(Graph& graph) {
  std::vector<uint32_t> uses = use_counts(graph);
  std::vector<NodeId> kept;
  for (auto id = graph.order().rbegin(); id != graph.order().rend(); ++id) {
    const Node& node = graph.node(*id);
    const bool removable = is_computed(node) || node.as<View>();
    if (!removable || uses[node.results[0].index] > 0) {
      kept.push_back(*id);
      continue;
    }
    for (const Arg& arg : node.args) for_each_value(arg, [&](ValueId value) { --uses[value.index]; });
  }
  graph.set_order({kept.rbegin(), kept.rend()});
}

}  // namespace

void spread_cheap(Graph& graph, bool freeze) {
  Graph next = Spreader(graph, freeze).run();
  graph = std::move(next);
  drop_unused(graph);
}

}  // namespace sinter::passes
