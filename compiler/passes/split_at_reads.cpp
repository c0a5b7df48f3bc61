#include "compiler/passes/split_at_reads.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "compiler/ir/reading.h"
#include "compiler/passes/effects.h"
#include "compiler/passes/rewriter.h"
#include "compiler/support/errors.h"

namespace sinter::passes {
namespace {

using namespace ir;

bool is_read(const Node& node) {
  const Call* call = node.as<Call>();
  return call != nullptr && call->read;
}

bool is_leaf(const Node& node) { return node.as<Input>() || node.as<State>() || node.as<Constant>(); }

/// True for what every segment makes for itself: it costs nothing, and shares memory with what it looks at. Views that
/// read their memory otherwise are such wherever they lie: what crosses between segments is plain memory.
bool is_look(const Graph& graph, const Node& node) {
  if (node.as<View>()) return true;
  if (node.as<Call>() == nullptr || has_effect(node)) return false;
  return std::all_of(node.results.begin(), node.results.end(), [&](ValueId result) {
    const auto& alias = graph.value(result).alias;
    return alias && (is_leaf(graph.producer(alias->base)) || !reading_of(graph, result).plain());
  });
}

template <class Visit>
void for_each_operand(const Node& node, Visit&& visit) {
  for (const Arg& arg : node.args) for_each_value(arg, visit);
}

bool ascending(const Made& a, const Made& b) {
  return std::tie(a.segment, a.position, a.result) < std::tie(b.segment, b.position, b.result);
}

/// Says which segment each node belongs to.
class Placement {
 public:
  explicit Placement(const Graph& graph) : graph_(graph), segment_(graph.node_count(), nowhere) {
    for (NodeId id : graph.order()) reads_ += is_read(graph.node(id)) ? 1 : 0;
    uint32_t segment = 0;
    for (NodeId id : graph.order()) {
      if (!graph.node(id).as<Write>()) segment += pin(id, segment) ? 1 : 0;
    }
    for (NodeId id : graph.order()) {
      if (graph.node(id).as<Write>()) pin(id, reads_);
    }
    for (ValueId output : graph.outputs) demand(output, reads_);
  }

  /// Index of the last segment.
  [[nodiscard]] uint32_t last() const { return reads_; }
  [[nodiscard]] bool is_in(NodeId id, uint32_t segment) const { return segment_[id.index] == segment; }
  [[nodiscard]] uint32_t of(NodeId id) const { return segment_[id.index]; }

 private:
  static constexpr uint32_t nowhere = UINT32_MAX;

  /// Places what must run between the reads it stands between, with what it needs. True for a read.
  bool pin(NodeId id, uint32_t segment) {
    const Node& node = graph_.node(id);
    if (!must_run(graph_, node)) return false;
    segment_[id.index] = segment;
    for_each_operand(node, [&](ValueId value) { demand(value, segment); });
    return is_read(node);
  }

  void demand(ValueId value, uint32_t segment) {
    std::vector<ValueId> wanted{value};
    while (!wanted.empty()) {
      const NodeId id = graph_.value(wanted.back()).producer;
      wanted.pop_back();
      const Node& node = graph_.node(id);
      if (segment_[id.index] != nowhere || is_leaf(node)) continue;
      if (!is_look(graph_, node)) segment_[id.index] = segment;
      for_each_operand(node, [&](ValueId operand) { wanted.push_back(operand); });
    }
  }

  const Graph& graph_;
  uint32_t reads_ = 0;
  std::vector<uint32_t> segment_;
};

/// Builds one segment.
class Builder {
 public:
  Builder(const Graph& old, const Placement& placement, const std::vector<Made>& made, uint32_t index, uint32_t inputs)
      : old_(old), placement_(placement), made_(made), index_(index), inputs_(inputs), rewrite_(old) {}

  Segment run() {
    for (NodeId id : old_.order()) {
      if (placement_.is_in(id, index_)) emit(id);
    }
    if (index_ == placement_.last()) {
      for (ValueId output : old_.outputs) segment_.graph.outputs.push_back(get(output));
    }
    std::vector<ValueId> outputs = std::move(segment_.graph.outputs);
    segment_.graph = std::move(rewrite_.next());
    segment_.graph.outputs = std::move(outputs);
    order_leaves_first();
    return std::move(segment_);
  }

 private:
  void emit(NodeId id) {
    const Node& node = old_.node(id);
    if (is_read(node)) return end_with(node);
    own_written_memory(node);
    for_each_operand(node, [&](ValueId value) { get(value); });
    segment_.nodes.push_back(rewrite_.copy(id));
  }

  void end_with(const Node& node) {
    ReadCall read{*node.as<Call>(), node.args, {}, node.scope.valid() ? old_.scope(node.scope) : Scope{}};
    for (Arg& arg : read.args) {
      for_each_value(arg, [&](ValueId& value) {
        segment_.graph.outputs.push_back(get(value));
        value = ValueId{static_cast<uint32_t>(segment_.graph.outputs.size() - 1)};
      });
    }
    for (ValueId result : node.results) read.results.push_back(old_.type(result));
    segment_.read = std::move(read);
  }

  /// A call that writes a tensor of its own that an earlier segment made writes a copy of it.
  void own_written_memory(const Node& node) {
    for (ValueId result : node.results) {
      const auto& alias = old_.value(result).alias;
      if (!alias || is_leaf(old_.producer(alias->base)) || rewrite_.get(alias->base).valid()) continue;
      if (placement_.of(old_.value(alias->base).producer) == index_) continue;
      const ValueId copy =
          rewrite_.next().add1(Call{"aten::clone", {}, {}, false, true}, {{get(alias->base)}, {None{}}},
                               old_.type(alias->base), rewrite_.map_scope(node.scope));
      rewrite_.set(alias->base, copy);
    }
  }

  /// What stands for a value of the whole graph in this segment, made where it is missing.
  ValueId get(ValueId value) {
    if (const ValueId known = rewrite_.get(value); known.valid()) return known;
    const NodeId id = old_.value(value).producer;
    const Node& node = old_.node(id);
    if (is_leaf(node) || is_look(old_, node)) {
      for_each_operand(node, [&](ValueId operand) { get(operand); });
      for (ValueId result : node.results) {
        if (const auto& alias = old_.value(result).alias) get(alias->base);
      }
      rewrite_.copy(id);
      return rewrite_.get(value);
    }
    if (placement_.of(id) >= index_) throw InternalError("split_at_reads", "a value is used before it is made");
    const auto place = static_cast<uint32_t>(inputs_ + segment_.taken.size());
    const ValueId input = rewrite_.next().add1(Input{place}, {}, old_.type(value));
    rewrite_.next().value(input).alignment = old_.value(value).alignment;
    segment_.taken.push_back(made_[value.index]);
    rewrite_.set(value, input);
    return input;
  }

  void order_leaves_first() {
    Graph& graph = segment_.graph;
    std::vector<NodeId> order;
    for (const bool leaves : {true, false}) {
      for (const NodeId id : graph.order()) {
        if (is_leaf(graph.node(id)) == leaves) order.push_back(id);
      }
    }
    graph.set_order(std::move(order));
  }

  const Graph& old_;
  const Placement& placement_;
  const std::vector<Made>& made_;
  uint32_t index_;
  uint32_t inputs_;
  Rewriter rewrite_;
  Segment segment_;
};

/// Where each value is made, by value.
std::vector<Made> places_of_values(const Graph& graph, const Placement& placement) {
  std::vector<Made> made(graph.value_count());
  for (uint32_t segment = 0; segment <= placement.last(); ++segment) {
    uint32_t position = 0;
    for (NodeId id : graph.order()) {
      if (!placement.is_in(id, segment)) continue;
      const Node& node = graph.node(id);
      const uint32_t place = is_read(node) ? Made::by_read : position++;
      for (uint32_t i = 0; i < node.results.size(); ++i) made[node.results[i].index] = {segment, place, i};
    }
  }
  return made;
}

}  // namespace

std::vector<Segment> split_at_reads(const Graph& functional, uint32_t inputs) {
  const Placement placement(functional);
  const std::vector<Made> made = places_of_values(functional, placement);
  std::vector<Segment> segments;
  for (uint32_t i = 0; i <= placement.last(); ++i) {
    segments.push_back(Builder(functional, placement, made, i, inputs).run());
    for (const Made& taken : segments.back().taken) {
      if (taken.position != Made::by_read) segments[taken.segment].given.push_back(taken);
    }
  }
  for (Segment& segment : segments) {
    std::sort(segment.given.begin(), segment.given.end(), ascending);
    segment.given.erase(std::unique(segment.given.begin(), segment.given.end()), segment.given.end());
  }
  return segments;
}

Graph graph_giving(const Segment& segment, const std::vector<Made>& given) {
  Graph graph = segment.graph;
  for (const Made& value : given) {
    graph.outputs.push_back(graph.node(segment.nodes.at(value.position)).results.at(value.result));
  }
  return graph;
}

}  // namespace sinter::passes
